"""Errors of the operations on global tables.

The service has no global tables of the version 2017.11.29 any more: the operations of that version
create nothing and find nothing. This server has no replicas, so no table has settings of replicas.

Source: answers of the service, October 2026.
"""

from __future__ import annotations

from dynactor.model.errors import (
    GlobalTableNotFoundException,
    ResourceNotFoundException,
    ValidationException,
    invalid_value,
)


def not_supported() -> ValidationException:
    """The error of an operation that would add a region to a global table of 2017."""
    return invalid_value(
        "DynamoDB global tables version 2017.11.29 is not supported. We recommend using DynamoDB "
        "global tables version 2019.11.21, instead of version 2017.11.29 (Legacy)."
    )


def no_global_table(name: str, before: str = "") -> GlobalTableNotFoundException:
    """The error of the other operations on global tables of 2017."""
    return GlobalTableNotFoundException(before + _not_there(name))


def no_replicas(name: str) -> ResourceNotFoundException:
    """The error of operations on auto scaling, for a table without replicas."""
    return ResourceNotFoundException(_not_there(name))


def _not_there(name: str) -> str:
    return f"Global table with name: '{name}' does not exist."
