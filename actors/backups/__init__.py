"""Backups of tables: copying, restoring, and the records of both.

A backup is a scan from one durable view, taken after the backup's record is durable. It copies the
rows of items under a table id that no table ever has (``table_backup_copy.py``). A view does not
survive a restart: each start deletes the rows of an unfinished copy and begins it again. The
database refuses to delete the table before its backup is AVAILABLE. Splits move no rows, so they do
not affect a copy. For the long-lived view of a copy the store does not record which keys change, so
a long copy needs no more memory.

A restored table is CREATING, so no other client writes to it (``restore_phases.py``). Its
partitions put the items that ``table_restore.py`` sends, in their own groups, each only where no
item exists: a repetition after a crash has no effect. These puts are not recorded as changes. Then
all global indexes are filled like added indexes. When they are ACTIVE, the table becomes ACTIVE.

Backups of the whole data directory are in ``storage/directory_backups.py``.
"""
