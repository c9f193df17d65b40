"""The settings of TLS."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Struct

from dynactor.model.option import Option, OptionGroup


class TlsSettings(Struct, frozen=True):
    """The certificate of the server's ports: a given one, or one for development."""

    certificate: Annotated[Path | None, Option("--tls-cert", OptionGroup.TLS)] = None
    """File with the certificate of the server and its chain, in PEM form. All ports then speak
    TLS."""

    key: Annotated[Path | None, Option("--tls-key", OptionGroup.TLS)] = None
    """File with the private key of --tls-cert, in PEM form, without a password."""

    self_signed: Annotated[bool, Option("--tls-self-signed", OptionGroup.TLS)] = False
    """Make a certificate for development in the data directory. Needs the extra dynactor[tls]."""

    @property
    def is_on(self) -> bool:
        """Whether the ports speak TLS."""
        return self.self_signed or self.certificate is not None
