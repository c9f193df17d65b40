"""The process may open as many files as its hard limit allows."""

from __future__ import annotations

import resource
import subprocess
import sys
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit

import pytest

from dynactor.storage.machine.open_files import open_files_limit
from tests.support.servers.server import PROJECT

_RAISE = """
import resource
from dynactor.storage.machine.open_files import open_files_limit, raise_open_files_limit
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
before = open_files_limit()
raise_open_files_limit()
print(before, open_files_limit())
"""


def test_the_soft_limit_of_the_shell_is_raised():
    _, hard = getrlimit(RLIMIT_NOFILE)
    command = (sys.executable, "-c", _RAISE)
    shown = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    before, after = map(int, shown.split())
    assert before == 100
    assert after >= 10_240 or after == hard


def test_an_unlimited_number_of_files_is_a_number_that_the_engine_accepts(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (RLIM_INFINITY, RLIM_INFINITY))
    assert open_files_limit() == 1 << 20
