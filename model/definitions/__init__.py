"""Definitions of tables and secondary indexes, and the entries of items in indexes."""
