"""Access control: which actions and resources a request is about, and the policies of callers."""
