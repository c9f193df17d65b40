"""The help of ``dynactor serve``."""

from __future__ import annotations

import re

from tests.support.servers.server import run_command

SCREEN_LINES = 24


def test_each_group_of_options_fits_on_a_screen():
    told = run_command("serve", "--help", COLUMNS="100").stdout
    groups = re.findall(r"^╭─ (.+?) ─+╮\n(.*?)^╰", told, re.MULTILINE | re.DOTALL)
    assert len(groups) > 5
    assert "Parameters" not in dict(groups)
    lines = {name: text.count("\n") + 2 for name, text in groups}
    assert {name: count for name, count in lines.items() if count > SCREEN_LINES} == {}
