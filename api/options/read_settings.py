"""Builds the settings of the server from the given options."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import Struct, structs

from dynactor import __version__
from dynactor.api.options.compatibility import with_compatibility
from dynactor.api.options.contradictions import check_settings
from dynactor.api.options.files import with_files
from dynactor.api.options.option_list import options, settings_fields
from dynactor.api.options.server_settings import ServerSettings
from dynactor.model.configuration_error import ConfigurationError
from dynactor.model.option import Option

T = TypeVar("T", bound=Struct)


def read_settings(**given: Any) -> ServerSettings:
    """The settings of options by their keys, with files read; raises ``ConfigurationError``."""
    assert given.keys() <= {option.key for option, _ in options()}
    completed = with_compatibility(given)
    settings = _built(ServerSettings, completed)
    check_settings(settings, completed)
    return _derived(with_files(settings))


def _built(settings: type[T], given: Mapping[str, Any]) -> T:
    """Settings with the parsed values of the given options, and defaults."""
    values = {}
    for field in settings_fields(settings):
        if field.option is None:
            values[field.name] = _built(field.given, given)
        elif field.option.key in given:
            values[field.name] = _parsed(field.option, given[field.option.key])
    return settings(**values)


def _parsed(option: Option, value: Any) -> Any:
    if option.parse is not None:
        return option.parse(value)
    if isinstance(value, int | float):
        _check_number(option, value)
    return value


def _check_number(option: Option, value: float) -> None:
    if not 0 <= value < math.inf:
        raise ConfigurationError(f"{option.name} must be at least 0, and finite: it is {value}")
    if value < option.at_least:
        raise ConfigurationError(f"{option.name} must be at least {option.at_least}")
    if option.above is not None and value <= option.above:
        raise ConfigurationError(f"{option.name} must be more than {option.above}")
    if option.at_most is not None and value > option.at_most:
        reason = f", {option.reason}" if option.reason else ""
        raise ConfigurationError(f"{option.name} must be at most {option.at_most:,.0f}{reason}")


def _derived(settings: ServerSettings) -> ServerSettings:
    """Settings with the fields that follow from options of other rooms."""
    database, directory = settings.database, settings.store.directory
    return structs.replace(
        settings,
        http=structs.replace(settings.http, region=database.region, access=settings.access),
        database=structs.replace(
            database,
            relays=structs.replace(
                database.relays, fences_former_homes=settings.is_node, version=__version__
            ),
            is_like_dynamodb_local=settings.compat is not None,
            import_log_directory=None if directory is None else str(directory),
            upload_directory=None if directory is None else str(directory / "uploads"),
            is_traced=settings.traces.endpoint is not None,
        ),
    )
