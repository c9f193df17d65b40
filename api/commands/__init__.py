"""The commands that are clients of a running server, and their two HTTP clients."""
