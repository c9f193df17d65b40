"""Requests: the shapes of their input, how it is validated, and what operations make of it."""
