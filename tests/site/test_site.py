"""The documentation's site: pages load nothing from other hosts, a dead link fails the build."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers.server import PROJECT

ROOT_PAGES = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
# Parts of a page that a browser loads by itself.
LOADED = re.compile(
    r"<(?:script|img|iframe|source|link(?![^>]*rel=\"?(?:canonical|next|prev)))\b[^>]*?"
    r"(?:src|href)=\"?((?:https?:)?//[^\" >]+)"
)
STYLED = re.compile(r"(?:url\(|@import\s)[\"']?((?:https?:)?//[^\"')]+)")


def build(project: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    return subprocess.run(
        command,
        cwd=project,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def copy_of_sources(folder: Path) -> Path:
    """The files that the site is made of."""
    shutil.copytree(PROJECT / "docs", folder / "docs")
    for name in (*ROOT_PAGES, "LICENSE", "mkdocs.yml"):
        shutil.copy(PROJECT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(PROJECT, folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_no_page_loads_anything_from_another_host(site: Path):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    assert {found for page in pages for found in LOADED.findall(page.read_text())} == set()


def test_no_style_sheet_loads_anything_from_another_host(site: Path):
    styles = [*site.rglob("*.css"), *site.rglob("*.html")]
    assert {found for style in styles for found in STYLED.findall(style.read_text())} == set()


def test_no_script_loads_a_script_from_another_host(site: Path):
    hosts = re.compile(r"https://(?:unpkg\.com|cdn\.|cdnjs\.|fonts\.)[^\"'` ]*")
    scripts = list(site.rglob("*.js"))
    assert scripts
    assert {found for script in scripts for found in hosts.findall(script.read_text())} == set()


@pytest.mark.parametrize("name", ROOT_PAGES)
def test_the_markdown_files_of_the_root_are_pages(site: Path, name: str):
    page = site / ("index.html" if name == "README.md" else name.replace(".md", ".html"))
    [title] = re.findall(r"^# (.+)$", (PROJECT / name).read_text(), re.MULTILINE)[:1]
    assert f">{title}<" in page.read_text()


def test_a_dead_link_fails_the_build(tmp_path: Path):
    sources = copy_of_sources(tmp_path / "sources")
    links = ("NOWHERE.md", "TESTING.md#nowhere", "../NOWHERE.md", "#nowhere")
    with (sources / "docs" / "MOTO.md").open("a") as page:
        page.writelines(f"\n[A dead link]({link})\n" for link in links)
    done = build(sources, tmp_path / "site")
    assert done.returncode == 1
    warnings = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    assert [link for link in links if not any(f"'{link}'" in each for each in warnings)] == []
    assert len(warnings) == len(links)
