"""The admin listener's path for metrics, which the server prints at its start."""

from __future__ import annotations

from typing import Final

METRICS_PATH: Final = "/metrics"
