"""Writes and transactions: what each does to the item it finds, and the change it makes."""
