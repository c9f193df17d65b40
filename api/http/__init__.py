"""HTTP and the JSON 1.0 protocol: connections, messages, compression, signatures, access."""
