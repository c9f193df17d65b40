"""The database's actor and the changes it makes: tables, phases, splits, streams, space."""
