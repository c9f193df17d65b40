"""The commands that use a running server."""
