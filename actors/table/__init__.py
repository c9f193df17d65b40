"""A table in use: reads, throttling, traffic counts, and its followers.

A page of a Query or Scan crosses the partitions in order, in one view (``pages.py``).

The limits of a table (``throttle.py``) are the one thing that its partitions share, on the event
loop:

- A request is refused at the door if a bucket is empty.
- A write takes its units between decision and commit, from the table and from each index that it
  changes, or from none. Units of a commit that the store refuses are given back.
- A read takes its units when its size is known. After one was refused, further reads are checked
  at the door. A page is admitted by each partition that it enters; a refused page has paid none of
  them.
- A backfill takes the units that writes leave of its index.

``model/throttling/`` has the arithmetic, tested in a simulation on virtual time. It also moves
unused units to a busy partition.

``burst_balances.py`` stores the unused units of partitions, beside the requests. A full partition
has no row, so new and idle tables cost nothing. A balance that falls below its row is stored at
once, less a reserve; all rows are updated every ten seconds. So a row exceeds the true balance
only for the duration of a sync, and a crash loop gains no units.

``traffic.py`` counts which keys requests use, by minute, in bounded memory: all requests with
Contributor Insights, else a sample. Requests of tools (``api/requests/maintenance_header.py``) do
not count.
"""
