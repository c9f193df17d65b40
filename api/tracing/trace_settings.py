"""The settings of traces."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Struct

from dynactor.model.configuration_error import ConfigurationError
from dynactor.model.option import Option, OptionGroup


def _endpoint(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        url = urlsplit(text)
        is_url = url.scheme in ("http", "https") and bool(url.hostname)
    except ValueError:
        is_url = False
    if not is_url:
        raise ConfigurationError(
            f"--traces-endpoint {text} is not a URL: give one like http://127.0.0.1:4318"
        )
    if not _has_exporter():
        raise ConfigurationError(
            "--traces-endpoint needs more packages: pip install 'dynactor[traces]'"
        )
    return text


def _share(share: float) -> float:
    if not 0 <= share <= 1:
        raise ConfigurationError(f"--traces-sampled must be from 0 to 1: it is {share}")
    return share


def _has_exporter() -> bool:
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ImportError:
        return False


class TraceSettings(Struct, frozen=True):
    """The receiver of traces; without an endpoint, nothing is traced."""

    endpoint: Annotated[str | None, Option("--traces-endpoint", OptionGroup.TRACES, _endpoint)] = (
        None
    )
    """URL of an OpenTelemetry receiver, OTLP over HTTP, for example http://127.0.0.1:4318. Without
    the option nothing is traced."""

    sampled: Annotated[float, Option("--traces-sampled", OptionGroup.TRACES, _share)] = 0.01
    """Share of requests to trace, from 0 to 1, among requests without a traceparent header. With
    the header, the flag "sampled" in it decides."""
