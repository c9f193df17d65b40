"""Floor 3: what lives: partitions, tables, the database."""
