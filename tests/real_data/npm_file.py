"""A file of an npm package, fetched once and cached."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

_DEADLINE_SECONDS = 60


class NotFetched(Exception):
    """The file is missing, and npm did not fetch it; the text says why."""


def npm_file(package: str, member: str, cache: Path) -> Path:
    """The path of ``member`` of ``package``, a name with a version, in ``cache``.

    Raises:
        NotFetched: npm is not installed, or could not fetch the package.
    """
    kept = cache / package / Path(member).name
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=kept.parent) as folder:
            _unpack(_packed(package, Path(folder)), member, Path(folder)).rename(kept)
    return kept


def _packed(package: str, folder: Path) -> Path:
    npm = ["npm", "pack", package, "--loglevel=error", "--fetch-retries=0"]
    try:
        done = subprocess.run(
            npm,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_DEADLINE_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise NotFetched("needs npm, which is not on this machine") from None
    except subprocess.TimeoutExpired:
        message = f"npm did not fetch {package} in {_DEADLINE_SECONDS} seconds"
        raise NotFetched(message) from None
    if done.returncode:
        reason, *_ = done.stderr.splitlines() or ["it does not say why"]
        raise NotFetched(f"npm could not fetch {package}: {reason}")
    (tarball,) = folder.glob("*.tgz")
    return tarball


def _unpack(tarball: Path, member: str, folder: Path) -> Path:
    unpacked = folder / "unpacked"
    with tarfile.open(tarball) as archive:
        content = archive.extractfile(f"package/{member}")
        assert content is not None
        unpacked.write_bytes(content.read())
    return unpacked
