"""Keys and positions: their bytes, rules and ranges, and points to divide a range."""
