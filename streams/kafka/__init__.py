"""Changes as Kafka's consumers see them: formats, messages, the broker's port and its client."""
