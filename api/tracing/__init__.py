"""Traces for OpenTelemetry. A server imports this only if it exports traces."""
