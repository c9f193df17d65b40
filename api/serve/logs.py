"""Logs: lines on standard error, ours and those of libraries in one form."""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import Processor

from dynactor.api.serve.log_level import LogLevel


def configure_logs(level: LogLevel) -> None:
    """Log from this level on to standard error."""
    threshold = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer = structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(),
        # Local variables hold requests: clients' data and credentials stay out of logs.
        exception_formatter=structlog.dev.plain_traceback,
    )
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(processor=renderer, foreign_pre_chain=shared)
    )
    logging.basicConfig(level=threshold, handlers=[handler], force=True)
