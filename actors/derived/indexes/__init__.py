"""Global secondary indexes: the followers that maintain them, and the backfill."""
