"""A run: its table, its processes and loops, and what they note."""
