"""Access keys, AWS signatures and session tokens: who sent a request."""
