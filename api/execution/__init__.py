"""The properties of an operation; pages, transactions and PartiQL statements, which many share."""
