"""dynactor: a self-hosted, durable DynamoDB."""

__version__ = "0.1.0"
