"""The machine below the store: its memory, and the limits and modes of files."""
