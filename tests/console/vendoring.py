"""Bundles the console's modules of others from npm: ``make console``.

``vendor.json`` has the version of each package. Another run gives the same bytes. ::

    python -m tests.console.vendoring
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.support.environment.languages import kept_folder, run, write_files
from tests.support.servers.server import PROJECT

CONSOLE = PROJECT / "api" / "console"
VENDOR = CONSOLE / "vendor"
MANIFEST = VENDOR / "vendor.json"
_ENTRY = """\
import { h } from "preact";
import htm from "htm";
export { h, render, Fragment } from "preact";
export {
  useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState,
} from "preact/hooks";
export const html = htm.bind(h);
"""


def manifest() -> dict[str, Any]:
    """The packages with their versions and licenses, and the files with their SHA-256."""
    content: dict[str, Any] = json.loads(MANIFEST.read_text())
    return content


def npm_folder() -> Path:
    """A folder with the packages and tools in their versions."""
    folder = kept_folder("npm-console")
    versions = {each["name"]: each["version"] for each in manifest()["packages"]}
    tools = manifest()["tools"]
    package = json.dumps({"private": True, "dependencies": versions, "devDependencies": tools})
    is_known = (folder / "package.json").is_file()
    if not is_known or (folder / "package.json").read_text() != package:
        write_files(folder, {"package.json": package})
        run(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"], folder)
    return folder


def bundled() -> dict[str, bytes]:
    """The files of ``vendor/`` that are made of packages, by name."""
    folder = npm_folder()
    write_files(folder, {"preact.entry.js": _ENTRY})
    run(
        [
            "node_modules/.bin/esbuild",
            "preact.entry.js",
            *("--bundle", "--minify", "--format=esm", "--log-level=error", "--outfile=preact.js"),
        ],
        folder,
    )
    files = {"preact.js": (folder / "preact.js").read_bytes()}
    for package in manifest()["packages"]:
        name = package["name"]
        files[f"{name}.LICENSE.txt"] = (folder / "node_modules" / name / "LICENSE").read_bytes()
    return files


def main() -> None:
    """Write the files and their SHA-256."""
    files = bundled()
    for name, content in files.items():
        (VENDOR / name).write_bytes(content)
    told = manifest() | {
        "files": {name: sha256(content).hexdigest() for name, content in files.items()}
    }
    MANIFEST.write_text(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    main()
