"""The stored catalog in memory: its owner, tables by name, streams, homes, and disk space."""
