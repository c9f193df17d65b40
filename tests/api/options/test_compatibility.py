"""The options that ``--compat dynamodb-local`` sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynactor.api.options.read_settings import read_settings
from dynactor.model.configuration_error import ConfigurationError


def test_without_the_option_no_other_option_changes():
    settings = read_settings(gsi_lag="fixed:1")
    assert str(settings.database.index_lag) == "fixed:1"
    assert settings.database.throttling == "auto"
    assert settings.separation == "shared"
    assert read_settings(regions="apart").separation == "region"


def test_the_option_sets_the_behavior_of_dynamodb_local():
    settings = read_settings(compat="dynamodb-local")
    database = settings.database
    assert (str(database.index_lag), database.throttling) == ("awaited", "observe")
    assert database.table_transition_seconds == database.index_allocation_seconds == 0
    assert database.time_to_live.transition_seconds == 0
    assert settings.separation == "access key"


def test_tables_can_be_shared():
    settings = read_settings(compat="dynamodb-local", shared_db=True)
    assert settings.separation == "shared"


def test_transitions_can_be_requested():
    settings = read_settings(
        compat="dynamodb-local", table_transition_seconds=2, index_allocation_seconds=1
    )
    database = settings.database
    assert (database.table_transition_seconds, database.index_allocation_seconds) == (2, 1)


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
        read_settings(compat="dynamodb-local", **options)


def test_credentials_are_not_checked(tmp_path: Path):
    keys = tmp_path / "keys"
    keys.touch(0o600)
    keys.write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    with pytest.raises(ConfigurationError, match="leave out --credentials-file"):
        read_settings(compat="dynamodb-local", credentials_file=keys)


def test_shared_tables_need_the_option():
    with pytest.raises(ConfigurationError, match="--shared-db belongs to --compat"):
        read_settings(shared_db=True)
