"""What ``dynactor serve`` needs before it listens: options, logs, the interpreter's settings."""
