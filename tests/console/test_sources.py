"""The sources of the pages: their types, and the modules of others."""

from __future__ import annotations

from hashlib import sha256

from tests.console.vendoring import CONSOLE, VENDOR, bundled, manifest, npm_folder
from tests.support.environment.languages import run


def test_the_sources_have_the_types_that_they_say():
    compiler = npm_folder() / "node_modules" / ".bin" / "tsc"
    assert run([str(compiler), "--project", "app"], CONSOLE) == ""


def test_the_modules_of_others_are_those_of_npm():
    files = bundled()
    assert {name: (VENDOR / name).read_bytes() for name in files} == files
    assert {name: sha256(content).hexdigest() for name, content in files.items()} == manifest()[
        "files"
    ]
