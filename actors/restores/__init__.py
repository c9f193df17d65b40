"""Tables that are created from backups, past states and imports, phase by phase.

A restored table is CREATING, so no other client writes to it (``restore_phases.py``). Its
partitions put the items that ``table_restore.py`` sends, in their own groups, each only where no
item exists: a repetition after a crash has no effect. These puts are not recorded as changes. Then
all global indexes are filled like added indexes. When they are ACTIVE, the table becomes ACTIVE.

A table may be deleted before that, so the deletion of tables is here, too (``table_deletion.py``).
"""
