"""Floor 3: the actors: partitions, tables, followers, the database."""
