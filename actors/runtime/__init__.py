"""The base of every actor: clocks, mailboxes, references, supervision.

A ``Ref`` (``ref.py``) is the only way to send a message: ``ask`` returns a future of the reply,
``tell`` returns nothing. A crash of an actor does not affect other actors. The supervisor answers
the pending messages with an error and restarts the actor from storage. After too many restarts it
abandons the actor.

A task that awaits a future gets a ``CancelledError`` if another task cancels the future. The
supervisor turns it into an ordinary error (``cancellation.py``), because it is a bug and not a
request to stop.
"""
