"""Secondary indexes: definitions, entries, and the changes that each phase allows."""
