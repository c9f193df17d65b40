"""The server as test suites start it. Imports the standard library alone, so that it loads fast."""
