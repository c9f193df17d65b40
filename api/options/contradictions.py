"""Checks for options that contradict each other, before the files that they name are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dynactor.api.admin_api.admin_settings import AdminSettings
from dynactor.api.hosting.store_settings import StoreSettings
from dynactor.api.http.server_identity import host_and_port
from dynactor.api.nodes.node_settings import NodeSettings
from dynactor.api.options.kafka_contradictions import check_kafka
from dynactor.api.options.server_settings import ServerSettings, is_loopback
from dynactor.model.configuration_error import ConfigurationError
from dynactor.storage.disk_sync import can_sync

_MOST_NAME_CHARACTERS: Final = 100


def check_settings(settings: ServerSettings, given: Mapping[str, Any]) -> None:
    """Refuse contradictory or too permissive settings; ``ConfigurationError`` describes the fix."""
    if settings.admin.full_clients and settings.admin.client_ca is None:
        raise ConfigurationError(
            "--admin-full-clients names certificates of clients: give --admin-client-ca"
        )
    _check_addresses(settings.nodes)
    check_kafka(settings.broker, settings.database.relays.form, given)
    _check_store(settings.store)
    _check_cluster(settings)
    if settings.store.kind == "disk" and not can_sync():
        raise ConfigurationError(
            "Data can be kept on disk only on Linux and macOS: dynactor can't make it durable "
            "on this system. Start with --in-memory, or in a container"
        )
    _check_hosts(settings)
    _check_tls(settings)
    _check_keys(settings)
    _check_backup_dir(settings.store, settings.admin)
    for option, is_given in (
        ("--allow-faults", settings.suites.allow_faults),
        ("--virtual-clock", settings.clock.start is not None),
    ):
        if is_given and settings.admin.no_admin:
            raise ConfigurationError(f"{option} needs the admin port: leave out --no-admin")


def _check_addresses(nodes: NodeSettings) -> None:
    """Check that other nodes can reach this one, and machines that are no nodes can't use it."""
    address, advertised = nodes.address, nodes.advertised
    if address is None:
        if any(
            value is not None for value in (advertised, nodes.name, nodes.secret_file, nodes.ca)
        ):
            raise ConfigurationError(
                "--peer-advertise, --node-name, --peer-secret-file and --peer-ca are for "
                "several nodes: give --peer-listen"
            )
        return
    if advertised is None and address.is_wildcard:
        raise ConfigurationError(
            f"--peer-listen {host_and_port(*address)}: give the address at which other nodes reach "
            "this one, such as 10.0.0.5:7000, here or with --peer-advertise"
        )
    if advertised is not None and (advertised.is_wildcard or not advertised.port):
        raise ConfigurationError(
            f"--peer-advertise {host_and_port(*advertised)}: give the address at which other nodes "
            "reach this one, such as 10.0.0.5:7000"
        )
    if not address.is_loopback and not nodes.is_authenticated:
        raise ConfigurationError(
            f"Every machine that can reach {host_and_port(*address)} could send requests there: "
            "give --peer-secret-file or --peer-ca, the same on all nodes"
        )
    if nodes.name is not None and not 0 < len(nodes.name) <= _MOST_NAME_CHARACTERS:
        raise ConfigurationError(f"--node-name must have 1 to {_MOST_NAME_CHARACTERS} characters")


def _check_store(store: StoreSettings) -> None:
    """Refuse options of the embedded engine, which have no effect on PostgreSQL or in memory."""
    if store.in_memory and store.data_dir is not None:
        raise ConfigurationError("--in-memory keeps nothing in --data-dir: give one of them")
    if store.url is None:
        if store.read_url is not None:
            raise ConfigurationError(
                "--read-store is a standby of --store: give the URL of the primary, too"
            )
        return
    _refuse(
        "--store",
        (
            ("--data-dir", store.data_dir is not None, "the data are in PostgreSQL"),
            ("--in-memory", store.in_memory, "the data are in PostgreSQL"),
            ("--cache-mib", store.cache_bytes is not None, "set shared_buffers of PostgreSQL"),
            ("--backup-dir", store.backup_dir is not None, "use PostgreSQL's own backups"),
            ("--serve-backup", store.serve_backup, "restore PostgreSQL's own backup"),
        ),
    )


def _check_cluster(settings: ServerSettings) -> None:
    """Refuse options that one node could not apply for the whole cluster."""
    if not settings.is_node:
        return
    if settings.store.url is None:
        raise ConfigurationError(
            "--peer-listen needs --store postgresql://…, the database that the nodes share"
        )
    if settings.keys.file is not None and not settings.nodes.is_authenticated:
        raise ConfigurationError(
            "--credentials-file with --peer-listen needs --peer-secret-file or --peer-ca, "
            "because nodes trust each other's word for the address of a client"
        )
    suites, is_virtual = settings.suites, settings.clock.start is not None
    _refuse(
        "--peer-listen",
        (
            ("--virtual-clock", is_virtual, "it is the clock of one server"),
            ("--allow-reset", suites.allow_reset, "a reset is for tests with one server"),
            ("--seed", settings.store.seed is not None, "two nodes would fill the same table"),
            ("--allow-faults", suites.allow_faults, "faults are for tests with one server"),
        ),
    )


def _refuse(option: str, others: Iterable[tuple[str, bool, str]]) -> None:
    """Refuse other options, if they are given, each with its reason."""
    for other, is_given, reason in others:
        if is_given:
            raise ConfigurationError(f"{option} can't be combined with {other}: {reason}")


def _check_hosts(settings: ServerSettings) -> None:
    """Refuse open access that is not explicitly allowed."""
    host, admin = settings.host, settings.admin
    if settings.allow_open:
        return
    if settings.keys.file is None and not is_loopback(host):
        raise ConfigurationError(
            f"Every client that can reach {host} is accepted: give --credentials-file "
            "with the keys that clients must sign with, or add --allow-open if that is intended"
        )
    restricts_reading = admin.read_secret_file is not None or admin.client_ca is not None
    if not (is_loopback(admin.host) or restricts_reading):
        raise ConfigurationError(
            f"Every client that can reach {admin.host} may read metrics, keys of items "
            "and the state of the server there: give --admin-read-secret-file or "
            "--admin-client-ca, or add --allow-open if that is intended. Changes need "
            "--admin-secret-file anyway"
        )


def _check_tls(settings: ServerSettings) -> None:
    """Refuse half of a certificate, and two certificates."""
    tls = settings.tls
    if (tls.certificate is None) != (tls.key is None):
        raise ConfigurationError("--tls-cert and --tls-key belong together: give both of them")
    if tls.self_signed and tls.certificate is not None:
        raise ConfigurationError(
            "--tls-self-signed makes a certificate: leave out --tls-cert and --tls-key"
        )
    for option, path in (
        ("--admin-client-ca", settings.admin.client_ca),
        ("--peer-ca", settings.nodes.ca),
    ):
        if path is not None and not tls.is_on:
            raise ConfigurationError(
                f"{option} needs TLS: give --tls-cert and --tls-key, or --tls-self-signed"
            )


def _check_keys(settings: ServerSettings) -> None:
    """Refuse options that need the file of keys, or policies, without them."""
    keys, policies = settings.keys, settings.policies
    if keys.secret_file is not None and keys.file is None:
        raise ConfigurationError(
            "--credentials-key-file decrypts --credentials-file: give both of them"
        )
    if policies.directory is not None and keys.file is None:
        raise ConfigurationError(
            "--policy-dir needs --credentials-file: its profiles name the policies of their keys"
        )
    if policies.directory is None and policies.explains:
        raise ConfigurationError("--explain-access explains policies: give --policy-dir")


def _check_backup_dir(store: StoreSettings, admin: AdminSettings) -> None:
    """Check that backups can be requested, and are outside the data directory."""
    if store.backup_dir is None:
        return
    if admin.no_admin:
        raise ConfigurationError("--backup-dir needs the admin port: leave out --no-admin")
    # Resolved, so that links don't hide a path into the data directory.
    backups, data = store.backup_dir.expanduser().resolve(), store.directory
    if data is not None and backups.is_relative_to(data.resolve()):
        raise ConfigurationError(
            f"--backup-dir {store.backup_dir} is in the data directory {data}: give a directory "
            "beside it"
        )
