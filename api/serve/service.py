"""The server process: start, announcement, and stop by a signal."""

from __future__ import annotations

import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import anyio
import structlog

from dynactor.actors.database.virtual_clock import ClockBehindData, ClockState
from dynactor.api.access.policy_settings import PolicyMode
from dynactor.api.admin_api.metrics_path import METRICS_PATH
from dynactor.api.admin_api.times import iso_time, pace
from dynactor.api.commands.tables.transfer_failed import TransferFailed
from dynactor.api.http.server import CannotListen
from dynactor.api.options.server_settings import ServerSettings
from dynactor.api.serve.interpreter import set_interpreter
from dynactor.api.serve.logs import configure_logs
from dynactor.api.serve.parent_watch import end_with_parent
from dynactor.api.serve.running_server import RunningServer, running_server
from dynactor.api.serve.service_manager import notify_service_manager
from dynactor.api.tls.certificate import BadCertificate
from dynactor.storage.machine.open_files import open_files_limit, raise_open_files_limit
from dynactor.storage.store import CannotOpen, Damaged, Full, Unavailable
from dynactor.streams.kafka.broker import BrokerRefused

# Enough for a few hundred connections and the files of a large store.
_FEW_FILES: Final = 4_096

_log = structlog.get_logger(__name__)


class _EndedWithoutSignal(Exception):
    """The server has ended without a signal."""


def run(settings: ServerSettings) -> None:
    """Serve until SIGTERM or SIGINT; exits with 1 and a message if that is not possible."""
    configure_logs(settings.logs.level, settings.logs.format)
    if settings.exit_with_parent:
        end_with_parent()
    raise_open_files_limit()
    _warn_of_few_files()
    backend_options = {"use_uvloop": find_spec("uvloop") is not None}
    try:
        anyio.run(serve_until_signal, settings, backend_options=backend_options)
    except (
        BadCertificate,
        CannotListen,
        CannotOpen,
        Damaged,
        Full,
        BrokerRefused,
        TransferFailed,
        Unavailable,
    ) as error:
        sys.exit(f"dynactor: {error}")
    except _EndedWithoutSignal:
        _log.critical("server_ended", reason="no signal, but a part of it was cancelled: a bug")
        sys.exit(1)
    except ClockBehindData as error:
        sys.exit(
            f"dynactor: The virtual clock of {settings.store.shown} is at "
            f"{iso_time(error.stored_epoch_seconds)}, after the real time, and can't go back: add "
            "--virtual-clock now to continue from that time, or give another --data-dir"
        )


async def serve_until_signal(settings: ServerSettings) -> None:
    """Serve until SIGTERM or SIGINT; raises ``_EndedWithoutSignal``, or as ``running_server``."""
    is_asked = False
    # A closed terminal can't be opened, so find it now.
    has_terminal = _has_terminal()
    # Signals are received from the start, because a process may send one after the announcement.
    with anyio.open_signal_receiver(*_stop_signals()) as signals:
        async with running_server(settings) as running:
            set_interpreter()
            _announce(running, settings)
            notify_service_manager("READY=1")
            async for received in signals:
                if received == signal.SIGHUP and running.watches and not has_terminal:
                    _log.info("files_read", signal=received.name)
                    running.reload()
                    continue
                _log.info("stop_requested", signal=received.name)
                notify_service_manager("STOPPING=1")
                is_asked = True
                break
    # A task group that one of its tasks has cancelled ends without an error.
    if not is_asked:
        raise _EndedWithoutSignal


def _stop_signals() -> list[signal.Signals]:
    """The signals that end the server.

    Closing the server's terminal sends SIGHUP, unless nohup makes the server ignore it. Without a
    terminal, SIGHUP has a server read its files again.
    """
    hang_up = signal.getsignal(signal.SIGHUP)
    stopping = [signal.SIGTERM, signal.SIGINT]
    return stopping if hang_up == signal.SIG_IGN else [*stopping, signal.SIGHUP]


def _has_terminal() -> bool:
    """Whether the process has a controlling terminal, whose end SIGHUP reports."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _warn_of_few_files() -> None:
    limit = open_files_limit()
    if limit < _FEW_FILES:
        _log.warning(
            "open_files_limited",
            limit=limit,
            advice=f"each connection and each table file needs one: raise the hard limit, by "
            f"LimitNOFILE= or ulimit -Hn, to {_FEW_FILES} or more",
        )


def _announce(running: RunningServer, settings: ServerSettings) -> None:
    endpoint = running.endpoint
    everywhere = " and all other addresses of this machine" if running.is_everywhere else ""
    admin = running.admin_endpoint
    keys, policies = settings.keys.file, settings.policies
    with_key = f", with a key of {keys}" if keys else ""
    any_key = ', aws_access_key_id="any", aws_secret_access_key="any"'
    sys.stdout.write(
        f"Listening on {endpoint}{everywhere}\n"
        + (f"Metrics on {admin}{METRICS_PATH}\n" if admin else "")
        + (f"Console on {admin}/\n" if admin and running.has_console else "")
        + (_authority_note(running.authority) if running.authority else "")
        + (_clock_note(running.clock) if running.clock else "")
        + (_policy_note(policies.directory, policies.mode) if policies.directory else "")
        + f"Data in {settings.store.shown}\n"
        + f"Try it from Python{with_key} (pip install boto3):\n"
        + f'  import boto3; dynamodb = boto3.resource("dynamodb", endpoint_url="{endpoint}", '
        f'region_name="{settings.database.region}"{"" if keys else any_key})\n'
    )
    sys.stdout.flush()


def _authority_note(authority: Path) -> str:
    return f"Clients trust the certificate with AWS_CA_BUNDLE={authority}\n"


def _policy_note(policy_dir: Path, mode: PolicyMode) -> str:
    if mode == "observe":
        return f"Requests that the policies in {policy_dir} do not allow are logged, and executed\n"
    return f"Keys may do only what their policies in {policy_dir} allow\n"


def _clock_note(state: ClockState) -> str:
    return f"Virtual clock at {iso_time(state.now_epoch_seconds)}, {pace(state.speed)}\n"
