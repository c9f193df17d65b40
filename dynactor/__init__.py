"""dynactor: a self-hosted, durable DynamoDB.

In a checkout its subpackages are links to the folders beside this one. Python knows their files by
the links: set breakpoints in ``dynactor/actors/…``, not in ``actors/…``.
"""

__version__ = "0.1.0"
