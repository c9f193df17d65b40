"""Tables that are created from backups, past states and imports, phase by phase."""
