"""Units of time. Times in stored rows and records are whole microseconds since the epoch."""

from typing import Final

MICROSECONDS_PER_SECOND: Final = 1_000_000
