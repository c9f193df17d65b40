"""Backups of tables: copying, restoring, and the records of both."""
