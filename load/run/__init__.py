"""A run: its table, processes, loops and records."""
