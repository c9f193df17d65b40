"""Buckets of objects outside the store, for exports and imports: directories and S3."""
