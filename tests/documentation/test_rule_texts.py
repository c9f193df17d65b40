"""The rules that the console shows are those of docs/RULES.md."""

from __future__ import annotations

import json

from tests.support.documentation import rule_texts


def test_the_rules_of_the_console_are_those_of_the_page():
    shown = rule_texts.FILE.read_text()
    assert shown == rule_texts.content(), "write the file again with `make pages`"


def test_each_rule_that_advice_names_has_a_text_and_a_source():
    rules = json.loads(rule_texts.content())
    assert {"S24", "S139", "A9"} <= rules.keys()
    for rule in rules.values():
        assert rule["text"].rstrip(")").endswith(".")
        assert rule["url"].startswith("https://docs.aws.amazon.com/amazondynamodb/")
