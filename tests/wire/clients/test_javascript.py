"""The unmodified JavaScript SDK v3; ``javascript/smoke.mjs`` has the requests and checks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.tables.tables import unique_name

_SOURCES = Path(__file__).parent / "javascript"


@pytest.fixture(scope="module")
def project(pytestconfig: pytest.Config) -> Path:
    """A folder with the SDK that is kept between runs, so npm fetches the SDK only once."""
    folder = pytestconfig.rootpath / ".pytest_cache" / "javascript"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = (_SOURCES / "package.json").read_text()
    present = folder / "package.json"
    installed = (folder / "node_modules").is_dir() and present.is_file()
    if not installed or present.read_text() != wanted:
        present.unlink(missing_ok=True)
        npm = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
        present.write_text(wanted)
        done = subprocess.run(npm, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            present.unlink()
        assert done.returncode == 0, f"npm could not install the SDK:\n{done.stderr}"
    shutil.copy(_SOURCES / "smoke.mjs", folder)
    return folder


def test_the_javascript_sdk_v3_works(project: Path, endpoint: str):
    node = ["node", "smoke.mjs", endpoint, unique_name("javascript")]
    done = subprocess.run(
        node, cwd=project, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok: ") == 9
