"""docs/CONFIGURATION.md equals the page that is generated from the options' help texts."""

from __future__ import annotations

import re

from dynactor.api.options.option_list import options
from tests.support.documentation import configuration_page


def test_the_page_equals_the_one_generated_from_the_options():
    shown = configuration_page.PAGE.read_text()
    assert shown == configuration_page.page(), "write the page again with `make pages`"


def test_every_option_is_on_the_page_once():
    shown = re.findall(r"^\| `--([a-z-]+)`", configuration_page.page(), re.MULTILINE)
    assert sorted(shown) == sorted(option.name.removeprefix("--") for option, _ in options())
