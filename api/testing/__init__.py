"""The server for test suites. It imports only the standard library, so that it loads fast."""
