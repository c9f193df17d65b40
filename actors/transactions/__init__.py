"""Transactions over partitions: coordinator, commit rounds, client tokens, the gate for splits."""
