"""Exports, imports and bulk operations of tables."""
