"""A Debian root, and programs that run in it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.environment.dockerfile import Stage

# The packages that debian:bookworm-slim leaves out.
_EXCLUDED: Final = ("man", "doc", "locale", "info", "lintian")
# It also has no usrmerge, which depends on all of Perl.
_PERL: Final = (
    "usrmerge perl-modules-5.36 libfile-find-rule-perl libnumber-compare-perl libtext-glob-perl"
)
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Variables for machines that use a proxy, a package mirror or certificates of their own.
_NETWORK: Final = ("http_proxy", "https_proxy", "no_proxy", "PIP_CERT", "PIP_INDEX_URL")
_CERTIFICATES: Final = Path("/etc/ssl/certs/ca-certificates.crt")
_RESOLVER: Final = Path("/etc/resolv.conf")


def make_base(directory: Path, mmdebstrap: str) -> None:
    """Make a root with the packages of debian:bookworm-slim."""
    program = shutil.which(mmdebstrap)
    if program is None:
        raise SystemExit(f"{mmdebstrap} is not here: it is Debian's package mmdebstrap")
    excluded = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _EXCLUDED]
    options = (
        "--variant=minbase",
        "--include=usr-is-merged",
        f"--customize-hook=chroot $1 apt-get --yes --purge remove {_PERL}",
        *excluded,
    )
    # A helper program of mmdebstrap is in the same folder.
    path = f"{Path(program).parent}:{os.environ['PATH']}"
    subprocess.run(
        [program, *options, "bookworm", directory], env={**os.environ, "PATH": path}, check=True
    )


class Root:
    """The root of one stage, with the variables that its ENV instructions set."""

    def __init__(self, path: Path, stage: Stage) -> None:
        self.path = path
        self.stage = stage

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a container."""
        given = self.stage.environment
        path = given.get("PATH", "$PATH").replace("$PATH", _PATH)
        return {**given, "PATH": path, "HOME": "/"}

    def place(self, inside: str) -> Path:
        """A path in the root, from the machine's point of view."""
        return self.path / inside.lstrip("/")

    def files(self) -> Iterator[Path]:
        """All files, including links."""
        for folder, _, names in os.walk(self.path):
            yield from (Path(folder) / name for name in names)

    def directories(self) -> Iterator[Path]:
        """All directories."""
        for folder, _, _ in os.walk(self.path):
            yield Path(folder)

    def run(self, command: str, folder: str) -> None:
        """Run the command of a RUN instruction, with the machine's network."""
        network = {name: os.environ[name] for name in _NETWORK if name in os.environ}
        with self._network_files():
            self._run(f"cd {shlex.quote(folder)} && {command}", {**self.environment, **network})

    def _run(self, command: str, environment: Mapping[str, str]) -> None:
        subprocess.run(
            ["chroot", self.path, "/bin/sh", "-euc", command], env=environment, check=True
        )

    @contextmanager
    def _network_files(self) -> Iterator[None]:
        """The machine's resolver and certificates, which are not part of the image."""
        lent = [path for path in (_RESOLVER, _CERTIFICATES) if path.exists()]
        places = [self.place(str(path)) for path in lent]
        made = [place for place in places if not place.exists()]
        try:
            for path, place in zip(lent, places, strict=True):
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, place)
            yield
        finally:
            for place in made:
                place.unlink(missing_ok=True)
