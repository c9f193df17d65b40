"""Floor 2: the change stream, passive."""
