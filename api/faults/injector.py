"""The active fault rules, which choose the requests that get faults."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any, Final

from msgspec import Struct

from dynactor.api.execution.operation import Operation
from dynactor.api.faults.request_facts import FaultFacts
from dynactor.api.faults.rule import FaultRule
from dynactor.api.http.request_figures import RequestFigures
from dynactor.api.requests.call import Call

MOST_RULES: Final = 100
# The 99th percentile of a normal distribution, in standard deviations from the median.
_P99_DEVIATIONS: Final = 2.3263478740408408


class TooManyRules(Exception):
    """The server has the maximum number of rules."""


class _ActiveRule:
    """A rule, with the number of requests that it has matched."""

    def __init__(self, rule_id: str, rule: FaultRule) -> None:
        self.rule_id = rule_id
        self.rule = rule
        self.matched = 0
        self.injected = 0
        # Each rule has a separate generator, so that other rules don't change its random numbers.
        self.draws = Random(rule.seed)  # noqa: S311 - a test repeats it
        self._until = rule.until_epoch_seconds

    def chooses(self, facts: FaultFacts, now_epoch_seconds: float) -> bool:
        """Whether a request gets the fault; counts the request."""
        rule = self.rule
        if self._until is not None and now_epoch_seconds >= self._until:
            return False
        if not self._matches(facts):
            return False
        self.matched += 1
        if self.matched <= rule.after:
            return False
        if rule.next is not None and self.injected >= rule.next:
            return False
        if rule.share < 1 and self.draws.random() >= rule.share:
            return False
        self.injected += 1
        return True

    def _matches(self, facts: FaultFacts) -> bool:
        rule = self.rule
        return (
            rule.matches(facts.operation)
            and (rule.table is None or rule.table in facts.tables)
            and (rule.index is None or rule.index == facts.index)
            and (rule.key_id is None or rule.key_id == facts.key_id)
            # A batch with one request can't be divided.
            and (rule.fault != "unprocessed" or facts.batch_size > 1)
        )

    def delay_seconds(self) -> float:
        rule = self.rule
        if rule.seconds is not None:
            return rule.seconds
        if rule.from_seconds is not None and rule.to_seconds is not None:
            return self.draws.uniform(rule.from_seconds, rule.to_seconds)
        assert rule.median_seconds is not None
        assert rule.p99_seconds is not None
        deviation = math.log(rule.p99_seconds / rule.median_seconds) / _P99_DEVIATIONS
        return self.draws.lognormvariate(math.log(rule.median_seconds), deviation)


class Injection(Struct, frozen=True):
    """The faults of one request: a delay, and then at most one other fault."""

    facts: FaultFacts
    delay_seconds: float
    rule: FaultRule | None


class RuleState(Struct, frozen=True):
    """A rule as the admin port shows it: with its id, and counts of matched and faulty requests."""

    id: str
    rule: FaultRule
    matched: int
    injected: int


class FaultInjector:
    """Chooses requests by the rules, in the order in which they were added.

    A request gets the delays of all rules that choose it, and the first other fault.
    """

    def __init__(self, figures: RequestFigures, changed: Callable[[], None]) -> None:
        """``figures`` count the faults. ``changed`` is called on each change."""
        self._figures = figures
        self._changed = changed
        self._rules: dict[str, _ActiveRule] = {}
        self._added = 0

    @property
    def has_rules(self) -> bool:
        """Whether there are rules."""
        return bool(self._rules)

    @property
    def rules(self) -> list[RuleState]:
        """The rules in their order."""
        return [
            RuleState(each.rule_id, each.rule, each.matched, each.injected)
            for each in self._rules.values()
        ]

    def add(self, rule: FaultRule) -> RuleState:
        """Add a checked rule; raises ``TooManyRules`` if there are 100 rules already."""
        if len(self._rules) >= MOST_RULES:
            raise TooManyRules
        self._added += 1
        active = _ActiveRule(str(self._added), rule)
        self._rules[active.rule_id] = active
        self._changed()
        return RuleState(active.rule_id, rule, 0, 0)

    def remove(self, rule_id: str) -> bool:
        """Remove a rule; return whether it existed."""
        is_there = self._rules.pop(rule_id, None) is not None
        if is_there:
            self._changed()
        return is_there

    def clear(self) -> None:
        """Remove all rules."""
        self._rules.clear()
        self._changed()

    def draw(self, operation: Operation, call: Call[Any]) -> Injection | None:
        """The faults of a request; None if it gets no fault."""
        facts = FaultFacts.of(operation, call)
        now = call.database.clock.now_epoch_seconds()
        delay_seconds = 0.0
        found: FaultRule | None = None
        is_met = False
        for active in self._rules.values():
            if found is not None and active.rule.fault != "delay":
                continue
            if not active.chooses(facts, now):
                continue
            is_met = True
            counts = self._figures.of(call.database.settings.namespace).injected_faults
            counts[active.rule.fault, operation.name] += 1
            if active.rule.fault == "delay":
                delay_seconds += active.delay_seconds()
            else:
                found = active.rule
        return Injection(facts, delay_seconds, found) if is_met else None
