"""Switches Contributor Insights of tables and of their global indexes.

The counts are kept in memory, with the table's limits (``dynactor.actors.limits.traffic``). The
setting is in the table's record.
"""

from __future__ import annotations

from msgspec import Struct

from dynactor.actors.catalog import definition_commit
from dynactor.actors.parts.part import Part, Parts
from dynactor.actors.runtime.mailbox import Message
from dynactor.model.definitions.table import ContributorInsights, ContributorInsightsMode
from dynactor.model.errors import ResourceNotFoundException
from dynactor.model.tables import contributor_insights as rules
from dynactor.model.tables.contributor_insights import ContributorInsightsStatus


class SwitchedInsights(Struct, frozen=True):
    """The state of Contributor Insights after a request; the mode is None if it was never set."""

    status: ContributorInsightsStatus
    mode: ContributorInsightsMode | None


class UpdateContributorInsights(Message[SwitchedInsights], frozen=True):
    """Switch Contributor Insights of a table, or of the named index.

    Raises ``ResourceNotFoundException`` if there is no such table or index.
    """

    table_name: str
    index_name: str | None
    enabled: bool
    # None keeps the present mode, or sets DynamoDB's default if there is none.
    mode: ContributorInsightsMode | None = None


class ContributorInsightsSwitch(Part):
    """Switches Contributor Insights on or off."""

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts)
        self.handlers = {UpdateContributorInsights: self._update}

    def status(self, insights: ContributorInsights | None) -> ContributorInsightsStatus:
        """The present state of Contributor Insights."""
        return rules.insights_status(
            insights, self._clock.now_epoch_seconds(), self._settings.table_transition_seconds
        )

    async def _update(self, message: UpdateContributorInsights) -> SwitchedInsights:
        """Switch Contributor Insights on or off, durably.

        The returned status is ENABLING or DISABLING if anything was changed. Raises
        ``ResourceNotFoundException`` if the table or index is missing, being created or deleted.
        After ``StoreError``, nothing was changed.
        """
        table = self._tables.named(message.table_name)
        old = table.definition
        if old.status in ("CREATING", "DELETING"):
            raise ResourceNotFoundException(
                f"Requested resource not found: Table: {old.name} not found"
            )
        new = rules.changed(
            old,
            message.index_name,
            message.mode,
            self._clock.now_epoch_seconds(),
            enabled=message.enabled,
        )
        insights = rules.resource_insights(new, message.index_name)
        if insights is None:
            return SwitchedInsights("DISABLED", None)
        if new is old:
            status: ContributorInsightsStatus = "ENABLED" if insights.enabled else "DISABLED"
            return SwitchedInsights(status, insights.mode)
        await definition_commit.store(self._owner, table, new)
        return SwitchedInsights("ENABLING" if insights.enabled else "DISABLING", insights.mode)
