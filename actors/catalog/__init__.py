"""The stored catalog in memory: its owner, tables by name, commits of definitions, and homes."""
