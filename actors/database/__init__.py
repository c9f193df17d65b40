"""The actor of the database, which changes tables, and the database as requests see it."""
