"""One file per operation."""
