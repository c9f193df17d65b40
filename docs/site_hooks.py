"""Makes files of the repository's root pages of the site, with links that fit both places."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT: Final = Path(__file__).parent.parent
_FOLDER: Final = "docs/"
# Files of the root, and the pages that they become.
_PAGES: Final = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "SECURITY.md": "SECURITY.md",
    "LICENSE": "LICENSE.md",
}
_SOURCES: Final = {page: name for name, page in _PAGES.items()}
# The theme's script loads two others from this host: one for diagrams, one for browsers of 2019.
_FOREIGN_SCRIPTS: Final = "https://unpkg.com/"
_LINK: Final = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?=[)#])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files of the root."""
    for name, page in _PAGES.items():
        text = (_ROOT / name).read_text(encoding="utf-8")
        if not name.endswith(".md"):
            text = f"# License\n\n```text\n{text}```\n"
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links between files of the repository into links between pages."""
    del config, files
    uri = page.file.src_uri
    source = _SOURCES.get(uri, _FOLDER + uri)

    def page_of(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link["path"]))
        if target not in _PAGES and not target.startswith(_FOLDER):
            return link["path"]
        of_site = _PAGES.get(target, target.removeprefix(_FOLDER))
        return posixpath.relpath(of_site, posixpath.dirname(uri) or ".")

    return _LINK.sub(page_of, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Keep the theme's script from loading others from elsewhere."""
    for script in Path(config.site_dir, "assets", "javascripts").glob("*.js"):
        text = script.read_text(encoding="utf-8")
        if _FOREIGN_SCRIPTS in text:
            script.write_text(text.replace(_FOREIGN_SCRIPTS, "./"), encoding="utf-8")
