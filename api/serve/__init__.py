"""Start and stop of ``dynactor serve``: logs, watched files, the interpreter's settings.

After SIGTERM, the server accepts no connections, finishes requests, drains mailboxes, syncs and
closes. A server that ends without a signal logs an error, and its exit code is 1.

Tests can reset a running server (``api/hosting/database_host.py``). Requests wait while the
database closes and its rows are replaced (``storage/contents.py``). Then a new database opens over
the same store, with the settings of the start or with changed ones. A store in memory replaces its
engine instead of the rows. A snapshot for tests is a copy of all rows in memory.
"""
