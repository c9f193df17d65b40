"""The option ``--compat``, and the options that it sets.

Source: DynamoDB Developer Guide, "DynamoDB local usage notes", and measurements of version 3.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dynactor.api.options.option_list import options
from dynactor.model.configuration_error import ConfigurationError

_DYNAMODB_LOCAL: Final[dict[str, Any]] = {"gsi_lag": "awaited", "throttling": "observe"}
# ``--compat`` changes these defaults only, so an explicit value takes precedence.
_DEFAULTS: Final[dict[str, Any]] = {"index_allocation_seconds": 0.0}


def with_compatibility(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The given options, with those that ``--compat`` sets; raises ``ConfigurationError``."""
    if given.get("compat") is None:
        if given.get("shared_db"):
            raise ConfigurationError("--shared-db belongs to --compat dynamodb-local: give both")
        return given
    if given.get("regions") == "apart":
        raise ConfigurationError(
            "--compat dynamodb-local has separate tables for each access key and region, unless "
            "--shared-db is given: leave out --regions"
        )
    if given.get("credentials_file") is not None:
        raise ConfigurationError(
            "--compat dynamodb-local accepts any credentials: leave out --credentials-file"
        )
    defaults = {option.key: (option.name, field.default) for option, field in options()}
    changed = dict(given)
    for key, value in _DYNAMODB_LOCAL.items():
        name, default = defaults[key]
        if given.get(key, default) not in (default, value):
            raise ConfigurationError(
                f"--compat dynamodb-local means {name} {value}: leave out {name}"
            )
        changed[key] = value
    for key, value in _DEFAULTS.items():
        default = defaults[key][1]
        if given.get(key, default) == default:
            changed[key] = value
    return changed
