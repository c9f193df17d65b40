"""The formats of files with items: CSV, JSON and Ion."""
