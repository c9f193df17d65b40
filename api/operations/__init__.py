"""One file per operation; those on global tables have one together."""
