"""Secondary indexes: definitions, entries, and what each phase allows."""
