"""dynactor: a self-hosted, durable DynamoDB.

In a checkout, the subpackages are links to the folders beside this one. Python loads files through
the links, so set breakpoints in ``dynactor/actors/…`` rather than in ``actors/…``.
"""

__version__ = "0.1.0"
