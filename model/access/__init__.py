"""IAM policies: parses policy documents, and decides whether they allow an action."""
