"""Uploads, and jobs: imports, exports and bulk operations on the admin listener."""
