"""Commands that move items between tables, endpoints and files, as clients of DynamoDB's API."""
