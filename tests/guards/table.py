"""All rules of the table."""

from __future__ import annotations

from typing import Final

from tests.guards.batch_rules import BATCH_RULES
from tests.guards.expression_rules import EXPRESSION_RULES
from tests.guards.item_rules import ITEM_RULES
from tests.guards.legacy_rules import LEGACY_RULES
from tests.guards.member_rules import MEMBER_RULES
from tests.guards.rules import Rule
from tests.guards.statement_rules import SELECT_RULES, STATEMENT_RULES
from tests.guards.table_rules import TABLE_RULES
from tests.guards.value_rules import VALUE_RULES

RULES: Final[tuple[Rule, ...]] = (
    *VALUE_RULES,
    *EXPRESSION_RULES,
    *ITEM_RULES,
    *MEMBER_RULES,
    *BATCH_RULES,
    *LEGACY_RULES,
    *STATEMENT_RULES,
    *SELECT_RULES,
    *TABLE_RULES,
)
