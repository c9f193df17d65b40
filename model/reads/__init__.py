"""Pages of Query and Scan, and the bytes that a BatchGetItem may return."""
