"""The base of every actor: clocks, mailboxes, references, supervision.

A ``Ref`` (``ref.py``) is the only way to send a message: ``ask`` returns a future of the reply,
``tell`` returns nothing. A crash in an actor is its own: the supervisor answers the pending
messages with an error, restarts the actor from storage, and gives it up after too many restarts.
Other actors go on.

A future that was cancelled elsewhere can cancel the task that awaits it. ``cancellation.py`` turns
such a cancellation into an error, because it is a bug and not a request to stop.
"""
