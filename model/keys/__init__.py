"""Keys and positions: their bytes, their rules, ranges of them, and where ranges are divided."""
