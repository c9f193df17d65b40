"""Exports of tables into buckets, and imports of files from buckets into tables.

An export first makes an internal backup of its table (``actors/backups``), so its files show one
moment. No view of the store is kept while a slow bucket takes the files. A scan of the backup
writes the files (``export_files.py``). After a restart, the files are written again under the same
keys. The manifests come last, so an export without manifests is not complete.

An import fills a table that is CREATING, in the phases of a restored table
(``actors/restores/restore_phases.py``). No other actor writes to the table, so a scan commits the
rows of the items directly (``import_rows.py``). Another process decodes large files, so requests
don't wait for it (``decoding_process.py``). The counts go into the heads of the partitions together
with the next phase. After a crash the rows are dropped and loaded again. Clients may upload the
files over the admin port instead (``uploads.py``).

A bulk operation puts the items of files into an existing table (``bulk_put.py``). Its writes go
through the table's partitions. It does not continue after a crash.
"""
