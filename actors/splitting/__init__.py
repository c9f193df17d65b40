"""Splits of partitions: which partition, when, and how its range moves to the children.

``split_watch.py`` finds partitions to split, the largest first in each round.
``model/key_conditions/split_point.py`` chooses the position. The part
``actors/phases/splits.py`` splits:

1. One commit deletes the parent's head and writes the heads of the children, the ranges, the end of
   the log and the shards. It compares the parent's head, so the log ends exactly there. If the
   parent writes meanwhile, the commit is repeated. After three conflicts it locks the head.
2. The parent works until its next commit, which is refused. Then its actor ends
   (``actors/partition/partition_actors.py``).
3. The children start. They get the writes that the parent has not carried out, in their order.
   Transactions that the parent has prepared are prepared again at the children
   (``actors/transactions``).

An ended log is kept, with the ids of its followers, until all of them have passed it and no stream
shows it. A parent's log is deleted before its children's. A follower stores the end of a log before
the followers of the children's logs start. Both children of an index partition know which changes
were applied. So a follower can divide a message that the split interrupted, and send the parts to
the children. Partitions are identified by number, because places in the map change.
"""
