"""The database's actor, which changes tables, and the database as requests see it.

Requests find their table in ``database.py`` and go directly to it. Creating, changing and deleting
a table goes through the database's actor (``database_actor.py``), one message after another. The
parts of the control plane handle the messages (``parts.py``). Reads of a part bypass the mailbox
and return frozen values.
"""
