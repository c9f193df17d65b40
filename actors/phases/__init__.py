"""Changes of tables, and the phases of everything that takes time to change."""
