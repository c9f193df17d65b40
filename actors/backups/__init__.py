"""Backups of tables, their records, and tables as they were at a time.

A backup is a scan from one durable view, taken after the backup's record is durable. It copies the
rows of items under a table id that no table ever has (``table_backup_copy.py``). A view does not
survive a restart: each start deletes the rows of an unfinished copy and begins it again. The
database refuses to delete the table before its backup is AVAILABLE. Splits move no rows, so they do
not affect a copy. For the long-lived view of a copy the store does not record which keys change, so
a long copy needs no more memory.

Backups of the whole data directory are in ``storage/directory_backups.py``.
"""
