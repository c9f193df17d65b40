"""The options as parameters of the command ``dynactor serve``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, get_origin

from cyclopts import Group as Panel
from cyclopts import Parameter
from cyclopts.types import UInt16

from dynactor.api.options.option_list import SettingsField, help_texts, options
from dynactor.model.option import Option, OptionGroup

_TESTERS: Final = "Limits and delays that AWS fixes or hides."
# The order of panels in the help; panels with the same number are sorted by name.
_ORDER: Final = (
    {OptionGroup.ACCESS, OptionGroup.KEYS},
    {OptionGroup.DATA, OptionGroup.COPIES, OptionGroup.REGIONS, OptionGroup.TLS},
    {OptionGroup.ADMIN, OptionGroup.PROCESS, OptionGroup.CALLERS},
    {OptionGroup.LIMITS, OptionGroup.NODES, OptionGroup.TRACES},
    *({group} for group in list(OptionGroup)[list(OptionGroup).index(OptionGroup.KAFKA) :]),
)
_HELP: Final = {
    OptionGroup.NODES: "Run several servers on one database of --store.",
    OptionGroup.TRACES: "Needs the extra dynactor[traces].",
    OptionGroup.KAFKA: (
        "Publish the changes of tables. The other options need --kafka-bootstrap-servers."
    ),
    OptionGroup.TEST_TABLES: _TESTERS,
    OptionGroup.TEST_PARTITIONS: _TESTERS,
    OptionGroup.TEST_TIMES: _TESTERS,
}
_PANELS: Final = {
    group: Panel(group, help=_HELP.get(group, ""), sort_key=number)
    for number, groups in enumerate(_ORDER, 1)
    for group in groups
}


class OptionsCommand:
    """A command whose keyword arguments are the given options, for cyclopts.

    Cyclopts reads the parameters from ``__signature__``, and their help from ``__doc__``. The help
    is made only when it is shown, because it is read from the sources of the settings.
    """

    __name__ = "serve"

    def __init__(self, run: Callable[[Mapping[str, Any]], None]) -> None:
        self._run = run
        self.__annotations__ = {}
        self.__signature__ = inspect.Signature([_parameter(*each) for each in options()])

    def __call__(self, **given: Any) -> None:
        """Run the command with the given options."""
        self._run(given)

    def __getattribute__(self, name: str) -> Any:
        """The help of the parameters as ``__doc__``, or any other attribute."""
        if name == "__doc__":
            return "\n".join(f":param {key}: {text}" for key, text in help_texts().items())
        return super().__getattribute__(name)


def _parameter(option: Option, field: SettingsField) -> inspect.Parameter:
    given = field.given
    if option.is_port:
        given = UInt16 if given is int else UInt16 | None
    panel = _PANELS[option.group]
    switches = given is bool or get_origin(given) is tuple
    parameter = (
        Parameter(group=panel, negative=())
        if switches and not option.has_negative
        else Parameter(group=panel)
    )
    return inspect.Parameter(
        option.key,
        inspect.Parameter.KEYWORD_ONLY,
        default=field.default,
        annotation=Annotated[given, parameter],
    )
