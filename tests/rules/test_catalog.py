"""docs/RULES.md has every rule, and each rule with the status ``built`` has a test."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parents[1] / "docs" / "RULES.md"


def numbers_with_a_test() -> set[str]:
    """The rules and examples that a test names: S47 for ``test_s47_…``."""
    return {
        found[1].upper()
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and (found := re.match(r"test_([sa]\d+)_", node.name))
    }


def rows() -> dict[str, tuple[str, str]]:
    """Each rule's tag and its status; an example has the tag X."""
    page = PAGE.read_text()
    rules = re.findall(r"^\| (S\d+) \| ([TXOA]) \| ([^|]*?) ?\|", page, re.MULTILINE)
    examples = re.findall(r"^\| (A\d+) \| ([^|]*?) ?\|", page, re.MULTILINE)
    return {number: (tag, built) for number, tag, built in rules} | {
        number: ("X", built) for number, built in examples
    }


def test_the_page_has_every_rule_and_example_once():
    page = PAGE.read_text()

    numbers = re.findall(r"^\| ([SA]\d+) \|", page, re.MULTILINE)

    assert len(numbers) == len(set(numbers))
    assert set(numbers) == {f"S{n}" for n in range(1, 209)} | {f"A{n}" for n in range(1, 13)}


def test_every_rule_that_is_built_has_a_test():
    built = {number for number, (tag, built) in rows().items() if built and tag in "TX"}

    assert built <= numbers_with_a_test()


def test_every_test_names_a_rule_that_is_built():
    built = {number for number, (_, built) in rows().items() if built}

    assert numbers_with_a_test() <= built
