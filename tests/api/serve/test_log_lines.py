"""Control characters in log lines, which could forge a line or control a terminal."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.servers.server import PROJECT

PROGRAM = """
import logging, sys
import structlog
from dynactor.api.serve.logs import configure_logs
configure_logs("info", sys.argv[1])
structlog.get_logger("server").info("value", text="a\\nforged\\x1b[31m")
logging.getLogger("library").warning("message\\nforged %s", "\\x1b[31m\\r")
"""


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_control_characters_are_escaped(log_format: str):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, log_format],
        cwd=PROJECT,
        capture_output=True,
        check=True,
    )
    lines = done.stderr.decode().removesuffix("\n").split("\n")
    assert len(lines) == 2
    for line in lines:
        assert line.isprintable()
        assert "\\nforged" in line
