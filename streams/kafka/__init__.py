"""Changes as Kafka's consumers see them: formats, messages, the broker's port and its client.

A consumer event (``consumer_event.py``) is a change, an item of a snapshot, or a gap. A format is a
pure function of it. The default format copies the stored images into the message as they are.
"""
