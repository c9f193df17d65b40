"""The types of items and attribute values in DynamoDB's JSON.

Commands that only show keys import this module, because the rules for values load many others.
"""

from __future__ import annotations

from typing import Any, TypeAlias

AttributeValue: TypeAlias = dict[str, Any]
Item: TypeAlias = dict[str, AttributeValue]
