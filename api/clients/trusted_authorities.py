"""The certificate authorities that commands trust."""

from __future__ import annotations

import os
import ssl
from functools import cache
from typing import Final

# AWS's tools read the same variable.
_BUNDLE_VARIABLE: Final = "AWS_CA_BUNDLE"


@cache
def tls_context() -> ssl.SSLContext:
    """The settings of TLS connections: the system's authorities, or those of AWS_CA_BUNDLE.

    Cached, because this reads all certificates.
    """
    return ssl.create_default_context(cafile=os.environ.get(_BUNDLE_VARIABLE) or None)
