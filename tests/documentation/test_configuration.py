"""docs/CONFIGURATION.md equals the page that is generated from the options' help texts."""

from __future__ import annotations

import re
from dataclasses import fields

from dynactor.api.options.admin_options import AdminOptions
from dynactor.api.options.kafka_options import KafkaOptions
from dynactor.api.options.node_options import NodeOptions
from dynactor.api.options.options import ServeOptions
from dynactor.api.options.trace_options import TraceOptions
from tests.support.documentation import configuration_page


def test_the_page_equals_the_one_generated_from_the_options():
    shown = configuration_page.PAGE.read_text()
    assert shown == configuration_page.page(), "write the page again with `make pages`"


def test_every_option_is_on_the_page_once():
    shown = re.findall(r"^\| `--([a-z-]+)`", configuration_page.page(), re.MULTILINE)
    rooms = (ServeOptions, AdminOptions, KafkaOptions, NodeOptions, TraceOptions)
    options = {field.name for room in rooms for field in fields(room)} - {
        "admin_callers",
        "kafka",
        "nodes",
        "traces",
    }
    assert sorted(shown) == sorted(option.replace("_", "-") for option in options)
