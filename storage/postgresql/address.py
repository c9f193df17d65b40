"""The address of a database: the URL of ``--store`` or ``--read-store``."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from dynactor.storage.store import CannotOpen

SCHEMES: Final = ("postgresql", "postgres")
_DEFAULT_SCHEMA: Final = "dynactor"
_EXAMPLE: Final = "postgresql://user@host/dynactor"


class Address(NamedTuple):
    """A database and its schema. asyncpg gets ``urls``, one for each host; messages the rest."""

    urls: tuple[str, ...]
    schema: str
    user: str
    hosts: str
    database: str

    @property
    def shown(self) -> str:
        """The address without a password."""
        return f"PostgreSQL at {self.hosts}, database {self.database}, schema {self.schema}"


def parse_address(url: str, option: str = "--store") -> Address:
    """Parse the URL of an option; raises ``CannotOpen`` if it is malformed or names no database."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise CannotOpen(f"{option} is not a URL: {error}. Give one like {_EXAMPLE}") from None
    if parts.scheme not in SCHEMES:
        raise CannotOpen(f"{option} must be a URL like {_EXAMPLE}")
    database = unquote(parts.path.lstrip("/"))
    if not database:
        raise CannotOpen(f"The URL of {option} names no database: give one like {_EXAMPLE}")
    query = parse_qsl(parts.query, keep_blank_values=True)
    schema = dict(query).get("schema", _DEFAULT_SCHEMA)
    if not schema or schema.startswith("pg_"):
        raise CannotOpen(f"{option} can't use the schema {schema!r}: give another name")
    rest = [(name, value) for name, value in query if name != "schema"]
    user, at, hosts = parts.netloc.rpartition("@")
    return Address(
        tuple(
            urlunsplit(parts._replace(netloc=f"{user}{at}{host}", query=urlencode(rest)))
            for host in hosts.split(",")
        ),
        schema,
        unquote(user.partition(":")[0]) or "(the default)",
        hosts or dict(query).get("host", "(the default)"),
        database,
    )
