"""The admin port's listener, and the log of changes made over it."""
