"""Commands that copy the items of tables: import, export and mirror."""
