"""Change feeds of partitions, shared by a log's writer and its readers, and their wake-ups."""
