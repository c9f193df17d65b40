"""Layer 2: change records, shards and formats for Kafka, as values and functions."""
