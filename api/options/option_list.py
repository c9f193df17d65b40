"""All options, collected from the settings that they set."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, get_args

from msgspec import NODEFAULT, UNSET, Struct, structs

from dynactor.api.options.server_settings import ServerSettings
from dynactor.model.option import Option, OptionGroup


class SettingsField(NamedTuple):
    """A field of settings: an option, or settings of a room."""

    name: str
    option: Option | None
    # The type and the default of a value on the command line, or the class of the settings.
    given: Any
    default: Any = None


@cache
def settings_fields(settings: type[Struct]) -> tuple[SettingsField, ...]:
    """The fields of a class of settings that are options or settings of a room."""
    return tuple(_fields(settings))


def _fields(settings: type[Struct]) -> Iterator[SettingsField]:
    for field in structs.fields(settings):
        arguments = get_args(field.type)
        if arguments and isinstance(arguments[-1], Option):
            option = arguments[-1]
            default = None if field.default is NODEFAULT else field.default
            yield SettingsField(
                field.name,
                option,
                arguments[0] if option.given is UNSET else option.given,
                default if option.default is UNSET else option.default,
            )
        elif _is_struct(field.type) and settings_fields(field.type):
            yield SettingsField(field.name, None, field.type)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


@cache
def options() -> tuple[tuple[Option, SettingsField], ...]:
    """All options, in the order of the page Configuration."""
    groups = list(OptionGroup)
    found = list(_options_in(ServerSettings))
    return tuple(sorted(found, key=lambda each: (groups.index(each[0].group), each[0].place)))


def _options_in(settings: type[Struct]) -> Iterator[tuple[Option, SettingsField]]:
    for field in settings_fields(settings):
        if field.option is None:
            yield from _options_in(field.given)
        else:
            yield field.option, field


def help_texts(settings: type[Struct] = ServerSettings) -> Mapping[str, str]:
    """The help of each option by its key: the text below its field."""
    [definition] = ast.parse(textwrap.dedent(inspect.getsource(settings))).body
    assert isinstance(definition, ast.ClassDef)
    texts: dict[str, str] = {}
    keys = {each.name: each.option.key for each in settings_fields(settings) if each.option}
    for statement, text in itertools.pairwise(definition.body):
        match statement, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(help_text))),
            ):
                texts[keys[name]] = " ".join(help_text.split())
    for field in settings_fields(settings):
        if field.option is None:
            texts |= help_texts(field.given)
    return texts
