"""The workload generator, ``dynactor load``, for any DynamoDB endpoint."""
