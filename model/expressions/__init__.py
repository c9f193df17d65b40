"""DynamoDB's expression language: from text to trees, and trees evaluated on items."""
