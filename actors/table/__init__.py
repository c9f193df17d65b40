"""A table at work: reads, throttling, traffic counts, and its followers."""
