"""Splits of partitions: which partition, when, and how its range moves to the children.

``split_watch.py`` finds partitions to split, the largest first in each round.
``model/keys/split_point.py`` chooses the position. ``splits.py`` splits for the database's actor:

1. A mailbox that holds messages back replaces the partition's mailbox
   (``actors/partition/partition_actors.py``). The partition drains its own mailbox and stops.
2. One commit writes the ranges, the heads of the children, the end of the log and the shards.
3. The children get the messages that were held back.

An ended log is kept, with the ids of its followers, until all of them have passed it and no stream
shows it. A parent's log is deleted before its children's. A follower stores the end of a log before
the followers of the children's logs start. Both children of an index partition know which changes
were applied. So a follower can divide a message that the split interrupted, and send the parts to
the children. Partitions are identified by number, because places in the map change.

``split_gate.py`` makes a split wait for transactions in progress, and new transactions for the
split.
"""
