"""Global secondary indexes: their partitions, backfills and followers."""
