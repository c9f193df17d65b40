"""The machine below the store: its memory, its disk space, and the limits and modes of files."""
