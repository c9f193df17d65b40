"""The admin listener: metrics, backups, clock, insights and replays of a running server.

The listener has its own port, on loopback by default (``api/admin_port/listener.py``). Every caller
may read. ``change_rules.py`` decides which callers may make changes. A request for metrics reads
those of tables from the actors, and a thread encodes them (``metrics/``).
"""
