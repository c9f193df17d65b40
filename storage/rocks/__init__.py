"""The store on RocksDB: the engine and its files, its options and errors, and views of its rows.

Reads do not queue behind writes. The view ``latest`` belongs to the owners of rows and shows
accepted groups, so that a decision builds on them. ``durable()`` serves all other reads and never
waits: it is a snapshot taken when a sync starts and published when the sync has returned, before
the replies go out. So a read never shows data that a power cut could take back.

Rows in memory are read on the event loop, without a task. After a read on the loop had to wait for
the disk, threads read the rows that are not in memory (``reads.py``). The latest value of a row is
also the durable one if the row has not changed since the snapshot (``storage/changed_keys.py``).

After a full disk, RocksDB is reopened: first for reading only, which needs no space, then for
writing, which is retried until there is space. The views switch to the new instance at once, so no
read waits. Groups that were accepted and not durable are lost then; a partition whose commit failed
loads its head again.

A table file that cannot be read fails only the requests that need its rows. If a compaction reads
it, RocksDB refuses all writes. The store then reopens RocksDB without compactions until the next
start.
"""
