"""Clients of a server, for commands: of its DynamoDB API and of its admin port."""
