"""Partitions: the loop that owns a range of rows, its cores and their effects.

One loop (``partition.py``) serves tables and global indexes: it takes a batch from the mailbox,
loads rows, commits and replies. A core decides: its decision is a value, and ``apply`` adds the
decision's rows to the batch. Between the two, the loop charges the decision's units, because later
writes of the batch must not see a throttled write.

- The core of a table is ``table_core.py``, with ``item_locks.py`` and ``transaction_parts.py``. It
  caches the sizes of the item collections that it wrote last, as long as only its own batches
  change the head. The core of a global index is in ``index_partition.py``.
- The effects of a table's partition are ``charges.py`` (units taken and returned), the change feed,
  and ``participant.py`` (rounds of transactions). ``table_partition.py`` assembles them.
- The partition map (``storage/partition_map.py``) is ordered by position: hash, partition key, sort
  key. Query and Scan cross partitions in that order. Scan segments divide the hash space.
"""
