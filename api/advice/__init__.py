"""Advice on a table: facts from a running server, findings, and their report."""
