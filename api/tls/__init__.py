"""TLS for listeners: certificates that are reloaded, development certificates, handshakes."""
