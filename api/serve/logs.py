"""Logs: lines on standard error, in one format for the server and its libraries."""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from dynactor.api.options.log_settings import LogFormat, LogLevel


def configure_logs(level: LogLevel, log_format: LogFormat = "text") -> None:
    """Log to standard error from this level, as text or as one JSON object per line."""
    threshold = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderers = _json_renderers() if log_format == "json" else [_escape_event, _text_renderer()]
    structlog.configure(
        processors=[*shared, *renderers],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
            foreign_pre_chain=shared,
        )
    )
    logging.basicConfig(level=threshold, handlers=[handler], force=True)
    # At debug level, aiohttp logs parts of malformed cookies, which may be secrets.
    logging.getLogger("aiohttp.internal").setLevel(logging.WARNING)


def _escape_event(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Escape control characters of a library's message; the renderer escapes those of values."""
    text = event.get("event")
    if isinstance(text, str) and not text.isprintable():
        event["event"] = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
    return event


def _text_renderer() -> Processor:
    return structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(),
        # Tracebacks leave out local variables, which may contain clients' data and credentials.
        exception_formatter=structlog.dev.plain_traceback,
    )


def _json_renderers() -> list[Processor]:
    return [
        # Plain tracebacks, without local variables.
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(),
    ]
