"""Layer 3: the actors: partitions, tables, followers, the database."""
