"""Effects of changes that are derived in the background: deletions of expired items, topics."""
