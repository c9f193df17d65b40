"""The store in a PostgreSQL that the user operates, through asyncpg."""
