"""Scans and followers of a table: they feed its items and changes to sinks.

A *sink* (``sink.py``) says what is derived from an item or a change, without I/O. The actors below
wait, retry, commit and store checkpoints for it.

- ``TableScan`` feeds the items of a table to a sink. A ``RowSink``'s rows are committed with the
  cursor. A ``FillSink`` divides a page into steps: send a message, take units, yield to other
  tasks. The scan repeats a refused message, and moves the cursor when all messages before it are
  carried out. A ``SnapshotSink`` gets the table as of one moment, and starts over if the view is
  lost.
- ``PartitionFollower`` feeds the changes of one log to a sink. ``FollowerGroup`` runs a follower
  for each log of a table. Followers that keep up wake together, right after a sync
  (``actors/feeds/coalesced_wakeups.py``), so that the next sync can include their commits.
- ``RoundFollower`` feeds the changes of all logs together, in rounds, to a system outside of the
  server. A ``RoundSink`` (``round_sink.py``) makes messages and a ``RoundSender`` delivers them and
  retries. A round has records of the open logs in turn (``rounds.py``), or items of a
  ``TableSnapshot``. The positions in the logs move after the round is acknowledged.

``log_progress.py`` is one log with its position, its stored checkpoint and its end.
``table_progress.py`` has all logs of a table: it opens a child's log when the end of the parent's
is stored, and stores all checkpoints in one commit.

A partition and its followers share its ``ChangeFeed``, a cache of the log's end that wakes readers.
A message for each record would cost a copy and a queue. A follower in another process reads the
same log from the store.

Rules:

- A sink with rows of its own is a function from an item to a row. The scan puts that row, and the
  follower compares the rows of both images. So the first fill and later changes cannot disagree.
- A sink stays in the folder of its subject (``actors/derived/expiry/``, ``actors/indexes/``),
  beside the code that reads what it derives.
- A sink's ``contract`` states the order that the sink needs, how often a change takes effect
  (``Delivery``), and the meaning of a gap. It limits the bytes of log that are kept for the sink.
  Beyond these bytes, a sink that may miss changes (``Gap.MISSING``) no longer delays trimming, a
  Kafka destination is cut off and rebuilt (``Gap.REBUILD``), and a replay fails (``Gap.END``).
- Every subscriber has a stored checkpoint in a log before it reads the log: in the commit that
  starts the subscriber, creates the table or splits the partition. Trimming reads these rows, not
  the position in memory. If a subscriber of an older version has no checkpoint in a log, the log is
  kept from its beginning.
- After a full disk, the store may be reopened without the last checkpoint. A row sink's follower
  and a scan then continue from the stored value, because the rows of the same commit are lost too.
"""
