"""The option ``--compat``, and the options that it sets.

Source: DynamoDB Developer Guide, "DynamoDB local usage notes", and measurements of version 3.3.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, Final

from dynactor.api.options.configuration_error import ConfigurationError
from dynactor.api.options.options import ServeOptions

_DYNAMODB_LOCAL: Final[dict[str, Any]] = {"gsi_lag": "awaited", "throttling": "observe"}
# ``--compat`` changes these defaults only, so an explicit value takes precedence.
_DEFAULTS: Final[dict[str, Any]] = {"index_allocation_seconds": 0.0}


def with_compatibility(options: ServeOptions) -> ServeOptions:
    """The options, with those that ``--compat`` sets.

    Raises:
        ConfigurationError: another option contradicts ``--compat``.
    """
    if options.compat is None:
        if options.shared_db:
            raise ConfigurationError("--shared-db belongs to --compat dynamodb-local: give both")
        return options
    if options.regions == "apart":
        raise ConfigurationError(
            "--compat dynamodb-local has separate tables for each access key and region, unless "
            "--shared-db is given: leave out --regions"
        )
    if options.credentials_file is not None:
        raise ConfigurationError(
            "--compat dynamodb-local accepts any credentials: leave out --credentials-file"
        )
    defaults = {field.name: field.default for field in fields(options)}
    for name, value in _DYNAMODB_LOCAL.items():
        if getattr(options, name) not in (defaults[name], value):
            option = f"--{name.replace('_', '-')}"
            raise ConfigurationError(
                f"--compat dynamodb-local means {option} {value}: leave out {option}"
            )
    changed = {
        name: value for name, value in _DEFAULTS.items() if getattr(options, name) == defaults[name]
    }
    return replace(options, **_DYNAMODB_LOCAL, **changed)
