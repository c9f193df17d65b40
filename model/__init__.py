"""Layer 0, pure: values, keys, expressions, decisions, capacity arithmetic, errors."""
