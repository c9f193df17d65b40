"""Faults that tests inject into answers: rules, their choice of requests, what each does."""
