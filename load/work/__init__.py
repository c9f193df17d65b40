"""The work to do: operations, keys, items and their pace."""
