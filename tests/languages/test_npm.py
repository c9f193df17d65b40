"""JavaScript: the guide's examples, and the SDK's retries after faults."""

from __future__ import annotations

from pathlib import Path

import pytest

import dynactor.testing
from tests.support.environment.languages import guide_files, kept_folder, run, write_files

_HERE = Path(__file__).parent

FAULTS = ["internal-server-error", "service-unavailable", "cut-before", "cut-after", "cut-middle"]


@pytest.fixture(scope="module")
def project() -> Path:
    """A folder with the SDK."""
    folder = kept_folder("npm-suite")
    is_new = not (folder / "node_modules").is_dir()
    write_files(
        folder,
        {
            **{name: (_HERE / name).read_text() for name in ("package.json", "retries.mjs")},
            **guide_files("javascript"),
        },
    )
    if is_new:
        run(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"], folder)
    return folder


def test_the_javascript_examples_of_the_guide_work(project: Path):
    assert "pass 1" in run(["node", "--test"], project)


def test_retries_of_the_sdk_apply_no_transaction_twice(project: Path):
    with dynactor.testing.server() as server:
        told = run(
            ["node", "retries.mjs", *FAULTS],
            project,
            ADMIN=server.admin_endpoint,
            **server.environment,
        )
    assert told.strip() == f"{len(FAULTS)} faults"
