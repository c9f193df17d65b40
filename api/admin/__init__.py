"""The admin listener: metrics, backups, clock, insights and replays of a running server.

It has a port of its own, on loopback by default (``listener.py``). Every caller may read.
``change_rules.py`` decides who may change something. Metrics of tables are read from the actors
when they are requested, and encoded in a thread (``metrics/``).
"""
