"""The server's setting for tables that exceed their capacity."""

from __future__ import annotations

from typing import Literal, TypeAlias

# "auto": enforce for provisioned tables, observe for those on demand.
ThrottlingSetting: TypeAlias = Literal["auto", "enforce", "observe", "off"]
