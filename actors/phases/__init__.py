"""Changes of tables, and the phases of everything that takes time to change.

Each file is a part of the control plane, or belongs to one (``actors/parts/part.py``). Tables,
global indexes, their throughput, time to live, destinations, backups and restored tables pass
through phases. Each kind has a table of phases for a ``PhaseMachine``: what starts a phase, what
ends it, what is stored, and which phases may follow (``actors/parts/phase_machine.py``).

- The machine starts a phase once and ignores a message for a phase that was left.
- If the store refuses a phase, the actor repeats the message, but not after ``Fenced``.
- After any other ``Conflict`` the actor loads the catalog again and handles the message once more.
  Each commit counts the node's commits of the catalog, so an earlier commit of unknown outcome
  shows as a ``Conflict``.
- After a commit of unknown outcome the actor first commits that count alone, so that the earlier
  commit can't be written later. Then it loads the catalog and starts all tables again.
  ``CatchUp`` makes the actor do this at once, and again until the store accepts the commit. Until
  then a table that was being deleted stays closed, and a partition that was being split stays
  stopped. Partitions use the definition that their stored heads name.

A replay doesn't use the machine: it ends with the server, so it has no phase to store and resume.
"""
