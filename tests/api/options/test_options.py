"""The effects of options of ``dynactor serve``, and invalid values."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from dynactor.actors.feeds.index_lag import NO_LAG, IndexLag
from dynactor.api.options.read_settings import read_settings
from dynactor.model.configuration_error import ConfigurationError


def test_without_options_a_server_is_local_and_on_disk(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/xdg")
    settings = read_settings()
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert settings.store.directory == Path("/xdg/dynactor")
    assert settings.access.allows_host("localhost:8000")
    assert not settings.access.allows_host("example.com")


def test_without_xdg_variables_data_is_in_the_home_directory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert read_settings().store.directory == Path("/home/somebody/.local/share/dynactor")


def test_a_system_without_reliable_syncs_supports_only_data_in_memory(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.delattr(os, "fdatasync")
    with pytest.raises(ConfigurationError, match="--in-memory, or in a container"):
        read_settings()
    assert read_settings(in_memory=True).store.directory is None


def test_only_global_indexes_may_have_the_lag_awaited():
    lag = read_settings(gsi_lag="awaited").database.index_lag
    assert not lag.is_delayed
    assert lag.reads_wait_seconds > 0
    assert read_settings().database.index_lag is NO_LAG
    with pytest.raises(ConfigurationError, match="give none, fixed:SECONDS"):
        read_settings(transaction_delay="awaited")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_needs_no_permission(host: str):
    assert not read_settings(host=host).access.allows_host("example.com")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "box.example.com"])  # noqa: S104
def test_any_other_address_needs_permission(host: str):
    with pytest.raises(ConfigurationError, match="--allow-open"):
        read_settings(host=host)
    with pytest.raises(ConfigurationError, match="--allow-open"):
        read_settings(admin_host=host)
    assert read_settings(host=host, allow_open=True).access.allows_host("anything.example.com")


def test_host_names_are_checked_on_an_open_address_if_names_are_configured():
    settings = read_settings(host="192.0.2.1", allow_open=True, allowed_hosts=("a.test, B.test",))
    assert settings.access.allows_host("a.test")
    assert settings.access.allows_host("b.test:8000")
    assert not settings.access.allows_host("c.test")


@pytest.mark.parametrize("name", ["http://a.test", "a.test:8000", "*", "*.a.test", "a.test."])
def test_an_invalid_host_name_is_refused(name: str):
    with pytest.raises(ConfigurationError, match="--allowed-hosts"):
        read_settings(allowed_hosts=("b.test", name))


@pytest.mark.parametrize("origin", ["a.test", "https://a.test/", "https://", "https://*.a.test"])
def test_an_invalid_origin_is_refused(origin: str):
    for real in ("https://a.test", "http://localhost:3000", "*", "null"):
        assert read_settings(cors_origins=(real,)).access.allows_origin(real)
    with pytest.raises(ConfigurationError, match="--cors-origins"):
        read_settings(cors_origins=("https://b.test", origin))


def test_memory_has_no_directory():
    assert read_settings(in_memory=True).store.directory is None


@pytest.mark.parametrize("region", ["", "us:east", "us/east", "us-east-1\n", "\u00e9u-west-1"])
def test_a_region_that_is_invalid_in_an_arn_is_refused(region: str):
    assert read_settings(region="us-gov-east-1").database.region == "us-gov-east-1"
    with pytest.raises(ConfigurationError, match="--region"):
        read_settings(region=region)


def test_a_table_has_at_least_one_partition():
    with pytest.raises(ConfigurationError):
        read_settings(partitions_per_table=0)


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["ttl_delay_seconds", "table_transition_seconds"])
def test_a_time_is_a_finite_number_from_zero_on(name: str, value: float):
    option = "--" + name.replace("_", "-")
    with pytest.raises(ConfigurationError, match=f"{option} must be at least 0"):
        read_settings(**{name: value})


def test_a_count_is_not_below_zero():
    with pytest.raises(ConfigurationError, match="--item-collection-limit-bytes"):
        read_settings(item_collection_limit_bytes=-1)


@pytest.mark.parametrize(
    "option", ["partition_limit_bytes", "split_heat_seconds", "split_check_seconds"]
)
def test_limits_that_split_partitions_are_more_than_zero(option):
    with pytest.raises(ConfigurationError, match=option.replace("_", "-")):
        read_settings(**{option: 0})


def test_a_transactions_delay_between_its_steps_is_fixed_or_drawn():
    assert read_settings().database.transaction_delay is NO_LAG
    fixed = read_settings(transaction_delay="fixed:0.25")
    assert fixed.database.transaction_delay == IndexLag(0.25, 0.25)
    drawn = read_settings(transaction_delay="random:0-0.05:7")
    assert drawn.database.transaction_delay == IndexLag(0.0, 0.05, 7)
    with pytest.raises(ConfigurationError, match="--transaction-delay soon is not understood"):
        read_settings(transaction_delay="soon")


@pytest.mark.parametrize("mib", [0, -1])
def test_a_cache_of_zero_bytes_is_refused(mib: int):
    with pytest.raises(ConfigurationError, match="--cache-mib must be at least 1"):
        read_settings(cache_mib=mib)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("data_dir", Path("/data")),
        ("in_memory", True),
        ("cache_mib", 64),
        ("backup_dir", Path("/backups")),
        ("serve_backup", True),
    ],
)
def test_options_of_the_embedded_store_contradict_postgresql(option: str, value: object):
    name = option.replace("_", "-")
    with pytest.raises(ConfigurationError, match=f"--store can't be combined with --{name}"):
        read_settings(store="postgresql://host/data", **{option: value})


def test_a_store_in_postgresql_needs_no_directory():
    settings = read_settings(store="postgresql://host/data")
    assert settings.store.directory is None
    assert settings.store.kind == "postgresql"
