"""Followers of tables."""
