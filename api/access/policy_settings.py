"""The settings of IAM policies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Struct

from dynactor.api.access.identities import Identities
from dynactor.model.option import Option, OptionGroup

PolicyMode: TypeAlias = Literal["enforce", "observe"]


class PolicySettings(Struct, frozen=True):
    """The policies of keys."""

    directory: Annotated[Path | None, Option("--policy-dir", OptionGroup.KEYS)] = None
    """Directory of IAM policies as JSON files. Profiles of --credentials-file name their policies,
    and a key may do only what its policies allow. Without the option a key may do everything."""

    mode: Annotated[PolicyMode, Option("--policy-mode", OptionGroup.KEYS)] = "enforce"
    """enforce refuses requests that no policy allows. observe logs these requests, and executes
    them."""

    explains: Annotated[bool, Option("--explain-access", OptionGroup.KEYS)] = False
    """Tell callers that ask with X-Dynactor-Explain-Access which statements of policies decide. The
    explanation shows parts of policies, and whether a table exists."""

    # The users and roles, read once. Without policies, users may do everything.
    identities: Identities = Identities({})
