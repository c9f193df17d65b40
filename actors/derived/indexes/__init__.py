"""Global secondary indexes: the followers that maintain them, and the backfill.

An index has partitions of its own, divided by its own key. The row of an entry ends with the
table's key, so entries with equal index keys are distinct. Each pair of a table partition and an
index has one follower (``index_changes.py``). The follower sends the rows to delete and to put. The
write computes these rows, and the change keeps them in memory. A follower that reads the log from
the disk computes them from both images. No follower reads the index.

An index partition stores, in the batch of the effect, the highest counter applied from each source
log, and skips changes at or below it. Sizes and counts are in the heads of the index partitions.
Once an index follows all changes, each change has the size of the entry that it replaces, so the
index partition need not read it. A full mailbox makes the follower wait, never the writer.

The backfill puts the entries of the table's items page by page from durable views, with a durable
cursor. Its entries may be out of date. The followers start only after the backfill, at the
positions where changes began to be recorded, so they repair these entries. A backfill divides a
page into several turns of the event loop, and pauses while requests use the table.

With ``--gsi-lag awaited`` a page waits until the followers have reached the positions that the
logs had when the page was requested. ``model/tables/global_index_phases.py`` says what each phase
allows.
"""
