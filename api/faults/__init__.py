"""Faults that tests inject into answers: rules, their choice of requests, their effects.

Faults wrap the operations of the protocol, only while rules exist. A request is validated before
it gets a fault. A body may carry a mark, so that the lanes damage the answer or cut its
connection.
"""
