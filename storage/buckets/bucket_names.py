"""The names of the server's buckets, which stand for URLs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from dynactor.model.configuration_error import ConfigurationError
from dynactor.model.option import listed

_NAME: Final = re.compile(r"[A-Za-z0-9]+[A-Za-z0-9._-]*[A-Za-z0-9]+\Z")


def parse_buckets(texts: Iterable[str]) -> Mapping[str, str]:
    """The URLs of the buckets of ``--bucket`` by their names; raises ``ConfigurationError``."""
    urls: dict[str, str] = {}
    for text in listed(texts):
        name, separator, url = text.partition("=")
        if not separator or _NAME.match(name) is None:
            raise ConfigurationError(
                f"--bucket {text} is not understood: give NAME=URL, as in "
                "exports=file:///var/exports"
            )
        if name in urls:
            raise ConfigurationError(f"--bucket {name} is given twice")
        # This imports structlog, which the server's start delays.
        from dynactor.storage.buckets.open_buckets import (  # noqa: PLC0415
            BadBucketUrl,
            open_bucket,
        )

        try:
            open_bucket(url)
        except BadBucketUrl as error:
            raise ConfigurationError(f"--bucket {text}: {error}") from None
        urls[name] = url
    return urls
