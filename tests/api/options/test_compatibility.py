"""The options that ``--compat dynamodb-local`` sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynactor.api.options.compatibility import with_compatibility
from dynactor.api.options.configuration_error import ConfigurationError
from dynactor.api.options.options import ServeOptions


def test_without_the_option_no_other_option_changes():
    options = ServeOptions(gsi_lag="fixed:1")
    assert with_compatibility(options) is options
    assert options.separation == "shared"
    assert ServeOptions(regions="apart").separation == "region"


def test_the_option_sets_the_behavior_of_dynamodb_local():
    options = with_compatibility(ServeOptions(compat="dynamodb-local"))
    assert (options.gsi_lag, options.throttling) == ("awaited", "observe")
    assert options.table_transition_seconds == options.index_allocation_seconds == 0
    assert options.ttl_transition_seconds == 0
    assert options.separation == "access key"


def test_tables_can_be_shared():
    options = with_compatibility(ServeOptions(compat="dynamodb-local", shared_db=True))
    assert options.separation == "shared"


def test_transitions_can_be_requested():
    given = ServeOptions(
        compat="dynamodb-local", table_transition_seconds=2, index_allocation_seconds=1
    )
    options = with_compatibility(given)
    assert (options.table_transition_seconds, options.index_allocation_seconds) == (2, 1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"gsi_lag": "fixed:1"}, "leave out --gsi-lag"),
        ({"throttling": "enforce"}, "leave out --throttling"),
        ({"regions": "apart"}, "leave out --regions"),
        ({"regions": "apart", "shared_db": True}, "leave out --regions"),
    ],
)
def test_a_contradictory_option_is_refused(options, told: str):
    with pytest.raises(ConfigurationError, match=told):
        with_compatibility(ServeOptions(compat="dynamodb-local", **options))


def test_credentials_are_not_checked(tmp_path: Path):
    keys = tmp_path / "keys"
    keys.touch(0o600)
    keys.write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    with pytest.raises(ConfigurationError, match="leave out --credentials-file"):
        with_compatibility(ServeOptions(compat="dynamodb-local", credentials_file=keys))


def test_shared_tables_need_the_option():
    with pytest.raises(ConfigurationError, match="--shared-db belongs to --compat"):
        with_compatibility(ServeOptions(shared_db=True))
