"""Exports and imports of tables: their records, and the formats of their files."""
