"""Floor 1: ordered bytes and atomic durable batches; the only floor that knows an engine.

``store.py`` is the port: load many keys, read a bounded page of a range in either direction,
commit, two views, reclaim, checkpoint, close. Code above this floor knows no path, file or
iterator.

The embedded engine is RocksDB. An engine that several nodes share fits behind the same port. So a
commit names the head that it expects and has two moments: accepted and durable. It fails only with
``Conflict``, ``Fenced``, ``Unknown``, ``Retry``, ``Full``, ``Closed`` or ``Damaged``.

There is one ordered space of keys (``key_layout.py``). Key bytes sort as DynamoDB sorts values,
numbers included. The value of a row is the item as canonical DynamoDB JSON behind a small header
(``codec.py``), so a read copies these bytes into its answer without decoding them.

A mark beside the log records how far the log is durable (``durable_watermark.py``). A log that
ends before the mark is damaged, and the server reports that at start. A torn record after the mark
is the normal result of a power cut.

A range delete only hides rows. A large range, such as a deleted table, is compacted in the
background, one range after another. A row in the deleting batch records the range and is removed
when the space is free, so every start continues the remaining work.

A checkpoint for a backup is a data directory of its own. It gets its name when it is complete
(``atomic_directory.py``). A thread makes it, also while space is reclaimed.
"""
