"""The limit after which a test counts as hanging."""

from __future__ import annotations

from typing import Final

# The limit is generous, because only a test that hangs may reach it, even on a machine that is
# slow and busy. It is shorter than pytest's ``faulthandler_timeout``, which ends the whole run.
HANG_SECONDS: Final = 200
