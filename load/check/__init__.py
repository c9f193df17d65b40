"""Checks that answers agree with the writes that were sent."""
