"""The admin listener: metrics, backups, clock, insights and replays of a running server."""
