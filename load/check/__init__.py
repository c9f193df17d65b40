"""Checking answers against what was written."""
