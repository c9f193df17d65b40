"""Answers as JSON: items, tables, streams, backups and explanations."""
