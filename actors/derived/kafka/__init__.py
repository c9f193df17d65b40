"""Publishing of changes to Kafka: relays, snapshots, replays."""
