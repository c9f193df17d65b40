"""Time to live: the list of expiry times, and the sweepers that delete expired items.

Each partition of the table has two actors:

- The *expirer* follows the changes and keeps a durable list of expiry times (``expiry_times.py``).
  For each change it deletes the time of the old item and puts the time of the new one. It owns
  these rows, so its checkpoint is in the same batch. The rows are ordered by time within 16 slices
  of the hash space. So no partition's backlog delays another one, and a split moves no rows.
- The *sweeper* (``sweeper.py``) reads the times that are due and sends the positions to the
  partition, many in one message, under one rate limit for the whole server. The sweeper never
  decides: the partition checks the item again and deletes it only if it is still expired, by the
  current TTL attribute.

A row that is out of date has no effect, so the list may lag. While no item is due a sweeper sleeps
on domain time; the expirer wakes it when an earlier time is listed. The cost depends on the number
of items that expire, not on the size of the table. Each slice ends with a row that is always
present, so no page walks over tombstones behind it. A swept time is not read again.

When a partition splits, its expirer reads to the end of the log, then its children's expirers
start. Its sweeper stops, and the children's sweepers read all listed times again.
"""
