"""The options of ``dynactor serve`` for traces."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from cyclopts import Group, Parameter

from dynactor.api.options.configuration_error import ConfigurationError

_TRACES: Final = Group("Traces", help="Needs the extra dynactor[traces].", sort_key=4)
_DEFAULT_SHARE: Final = 0.01


@Parameter(name="*", group=_TRACES)
@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """Invariant: an endpoint is a URL, and the packages for it are installed."""

    traces_endpoint: str | None = None
    """URL of an OpenTelemetry receiver, OTLP over HTTP, for example http://127.0.0.1:4318. Without
    the option nothing is traced."""

    traces_sampled: float = _DEFAULT_SHARE
    """Share of requests to trace, from 0 to 1, among requests without a traceparent header. With
    the header, the flag "sampled" in it decides."""

    def __post_init__(self) -> None:
        if not 0 <= self.traces_sampled <= 1:
            raise ConfigurationError(
                f"--traces-sampled must be from 0 to 1: it is {self.traces_sampled}"
            )
        if self.traces_endpoint is None:
            return
        try:
            url = urlsplit(self.traces_endpoint)
            is_url = url.scheme in ("http", "https") and bool(url.hostname)
        except ValueError:
            is_url = False
        if not is_url:
            raise ConfigurationError(
                f"--traces-endpoint {self.traces_endpoint} is not a URL: give one like "
                "http://127.0.0.1:4318"
            )
        if not _has_exporter():
            raise ConfigurationError(
                "--traces-endpoint needs more packages: pip install 'dynactor[traces]'"
            )


def _has_exporter() -> bool:
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ImportError:
        return False
