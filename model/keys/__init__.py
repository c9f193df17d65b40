"""Keys and positions: their schema, their bytes, and the fast path of typical keys."""
