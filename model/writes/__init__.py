"""Writes and transactions: the effect of each on an item, and the resulting change."""
