"""Actors that derive something from a table: indexes, expiry lists, topics, backups."""
