"""Functions that match differences; each kind of difference uses some of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from tests.differential.differences.compare import Difference

INVALID = r"One or more parameter values were invalid: "
CAPACITY = r"\.ConsumedCapacity(\[\])?(\..*)?( \(.*\))?"
METRICS = r"\.ItemCollectionMetrics \(ours only\)"
NOTATION = r".* \(notation\)"

Matcher = Callable[[Difference], bool]


class Kind(NamedTuple):
    """A kind of difference, with the reason why this server differs."""

    name: str
    reason: str
    matches: Matcher


def messages_match(ours: str, local: str, operations: str = "") -> Matcher:
    """Match if both servers refuse the request, with messages that start with these patterns."""
    our_pattern, local_pattern = re.compile(ours, re.DOTALL), re.compile(local, re.DOTALL)

    def matches(difference: Difference) -> bool:
        return (
            bool(difference.our_error and difference.local_error)
            and (not operations or difference.request.operation in operations.split())
            and our_pattern.match(difference.our_message) is not None
            and local_pattern.match(difference.local_message) is not None
        )

    return matches


def refused_here(ours: str, operations: str = "") -> Matcher:
    """Match if only this server refuses the request."""
    pattern = re.compile(ours, re.DOTALL)

    def matches(difference: Difference) -> bool:
        return (
            bool(difference.our_error)
            and not difference.local_error
            and (not operations or difference.request.operation in operations.split())
            and pattern.match(difference.our_message) is not None
        )

    return matches


def refused_there(local: str, operations: str = "") -> Matcher:
    """Match if only DynamoDB Local refuses the request."""
    pattern = re.compile(local, re.DOTALL)

    def matches(difference: Difference) -> bool:
        return (
            not difference.our_error
            and bool(difference.local_error)
            and (not operations or difference.request.operation in operations.split())
            and pattern.match(difference.local_message) is not None
        )

    return matches


def results_differ(*paths: str) -> Matcher:
    """Match if both servers accept the request, and the results differ only at these paths."""
    pattern = re.compile("|".join(paths))

    def matches(difference: Difference) -> bool:
        found = difference.paths
        return bool(found) and all(pattern.fullmatch(path) for path in found)

    return matches


def any_of(*matchers: Matcher) -> Matcher:
    return lambda difference: any(matches(difference) for matches in matchers)


def both_refuse(difference: Difference) -> bool:
    return bool(difference.our_error and difference.local_error)
