"""The Kafka records of changes, their formats, and the port and client of a broker.

A consumer event (``consumer_event.py``) is a change, an item of a snapshot, or a gap. A format
turns an event into a record without I/O. The default format copies the stored images into the
record unchanged.
"""
