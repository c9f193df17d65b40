"""The database's actor, which changes tables, and the database as requests see it.

Requests find their table in ``database.py`` and go directly to it. Creating, changing and deleting
a table goes through the database's actor (``database_actor.py``), one message after another. Parts
that only this actor calls do the work: those in ``actors/phases/``, ``actors/backups/``,
``actors/restores/`` and ``actors/transfers/``. Reads of the control plane use ``control_plane.py``,
which bypasses the mailbox and returns frozen values.
"""
