"""DynamoDB's expression language: parsing text into trees, and evaluating trees on items."""
