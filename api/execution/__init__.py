"""The shared execution of operations: pages, transactions and PartiQL statements."""
