"""Imports, exports and bulk operations on the admin listener."""
