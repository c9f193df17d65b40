"""What is asked: operations, keys, items and their pace."""
