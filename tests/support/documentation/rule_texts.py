"""The rules that advice and explanations name, for the console; written by ``make pages``.

docs/RULES.md is their only source.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, NamedTuple

_PROJECT: Final = Path(__file__).parents[3]
FILE: Final = _PROJECT / "api" / "console" / "app" / "rules.json"
# The code that names rules to users.
_NAMING: Final = ("api/advice", "model/advice")

_NAMED: Final = re.compile(r'"([SA]\d+|Arithmetic: \w+)"')
_SECTION: Final = re.compile(r"^## .*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_SOURCE: Final = re.compile(r"\*([^*]+)\*,\s+<(https:[^>]+)>")
_ROW: Final = re.compile(r"^\| (S\d+) \|.*\| (.+) \|$", re.MULTILINE)
_ARITHMETIC: Final = re.compile(r"^\| (\w+) \| (.+) \|$", re.MULTILINE)
_EXAMPLE: Final = re.compile(r"^\*\*(A\d+): (.+?)\*\* (.+?)\n\n", re.MULTILINE | re.DOTALL)
_EXAMPLE_FROM: Final = re.compile(r"^\| (A\d+) \| yes \| (S\d+)", re.MULTILINE)


class _Source(NamedTuple):
    title: str
    url: str


def named_rules() -> set[str]:
    """The rules that findings and explanations can name."""
    return {
        rule
        for folder in _NAMING
        for path in (_PROJECT / folder).rglob("*.py")
        for rule in _NAMED.findall(path.read_text())
    }


def content() -> str:
    """The file: for each rule its text, and the title and address of AWS's page."""
    page = (_PROJECT / "docs" / "RULES.md").read_text()
    texts: dict[str, str] = {}
    sources: dict[str, _Source] = {}
    for section in _SECTION.findall(page):
        rows = _ROW.findall(section)
        if section.startswith("## Arithmetic"):
            rows = [(f"Arithmetic: {name}", text) for name, text in _ARITHMETIC.findall(section)]
        for rule, text in rows:
            title, url = _SOURCE.findall(section)[0]
            texts[rule] = text
            sources[rule] = _Source(_one_line(title), url)
    for rule, title, text in _EXAMPLE.findall(page):
        texts[rule] = f"{title} {text}"
    for rule, origin in _EXAMPLE_FROM.findall(page):
        sources[rule] = sources[origin]
    rules = {
        rule: {"text": _sentence(texts[rule]), **sources[rule]._asdict()}
        for rule in sorted(named_rules())
    }
    return json.dumps(rules, indent=1, ensure_ascii=False) + "\n"


def _sentence(text: str) -> str:
    plain = _one_line(text).replace("`", "")
    end = "" if plain.rstrip(")").endswith(".") else "."
    return plain[0].upper() + plain[1:] + end


def _one_line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    FILE.write_text(content())
