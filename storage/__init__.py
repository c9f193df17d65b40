"""Floor 1: ordered bytes and atomic durable batches; the only floor that knows an engine."""
