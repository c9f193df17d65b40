"""Configuration and start of ``dynactor serve``: options, logs, the interpreter's settings.

SIGTERM stops accepting connections, finishes requests, drains mailboxes, syncs and closes. A
server that ends without a signal says so, and its exit code is 1.

Tests reset a running server (``database_host.py``): requests are held back, the database is
closed, and its rows are replaced (``storage/contents.py``). Then a new database opens over the
same store, with the settings of the start or others. A store in memory replaces its engine for
that. A snapshot for tests is all rows, in memory.
"""
