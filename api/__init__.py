"""Layer 4, the wire: HTTP, JSON 1.0, one file per operation, the command line."""
