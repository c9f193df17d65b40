"""Buckets of objects outside the store, for exports and imports: directories."""
