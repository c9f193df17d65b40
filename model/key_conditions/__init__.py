"""Conditions on keys, the ranges that they read, and points to divide a range."""
