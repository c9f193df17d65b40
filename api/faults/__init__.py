"""Faults that tests inject into answers: rules, the requests that they match, their effects.

While rules exist, each operation of the protocol is wrapped in one that injects faults. A request
is validated before it gets a fault. For a damaged answer or a cut connection, the operation returns
a ``DamagedBody``, and the HTTP lanes do the damage.
"""
