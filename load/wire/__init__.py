"""Requests and answers as they go over the wire."""
