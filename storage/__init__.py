"""Layer 1: ordered rows of bytes and atomic commits; the only layer that uses an engine.

``store.py`` is the port: load many keys, read a bounded page of a range in either direction,
commit, two views, reclaim, checkpoint, close. Code above this layer uses no path, file or iterator.

The embedded engine is RocksDB; the other one is PostgreSQL. Several servers can reach the same
PostgreSQL, so a commit names the head that it expects. A commit is accepted first, and durable
later. It fails only with ``Conflict``, ``Fenced``, ``Unknown``, ``Retry``, ``Full``, ``Closed`` or
``Damaged``.

There is one ordered space of keys (``key_layout.py``). Key bytes sort as DynamoDB sorts values,
numbers included. The value of a row is the item as canonical DynamoDB JSON behind a small header
(``codec.py``), so a read copies these bytes into its answer without decoding them.

A mark beside the log records how far the log is durable (``durable_watermark.py``). A log that
ends before the mark is damaged, and the server reports that at start. A torn record after the mark
is the normal result of a power cut.

A range delete only hides rows; a compaction frees their space. Large deleted ranges, such as
tables, are compacted in the background, one after another. The commit that deletes a range also
writes a row that names the range. The row is deleted when the space is free, so the next start
continues unfinished compactions.

A checkpoint is a complete data directory, and the base of a backup. It is renamed to its final name
when it is complete (``atomic_directory.py``). A thread creates it, even while another thread
reclaims space.
"""
