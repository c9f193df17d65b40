"""Transactions over partitions: coordinator, commit rounds, client tokens.

1. The coordinator (``coordinator.py``) asks every partition concerned to prepare. A partition
   decides its part and locks the keys in memory.
2. When all have accepted, the transaction is ready. It joins a round with all transactions that
   are ready at that time (``rounds.py``).
3. Each partition of the round hands over one group for all transactions of the round, with
   sequence numbers assigned now, and takes no other work until it knows the outcome.
4. One commit of all groups, with the client tokens in it, is the decision.

There is one round at a time, so a deadlock is impossible. Transactions that cannot be joined or
committed together are tried one by one. A transaction within one partition is part of that
partition's batch and needs no round.

A partition that is split loses its locks. A transaction that it has prepared or joined has written
nothing, because the commit of the split deletes the head that the transaction's group compares. So
the coordinator prepares the transaction again, at the children.

A read is one durable view. An item that is being written refuses the read, as on AWS. A client
token is a durable row for ten minutes (``client_tokens.py``).
"""
