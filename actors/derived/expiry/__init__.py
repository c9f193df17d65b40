"""Time to live: the list of expiry times, and the sweepers that delete expired items."""
