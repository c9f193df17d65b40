"""Several nodes on one database: members, the home of all tables, and requests forwarded to it."""
