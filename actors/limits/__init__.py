"""The capacity limits that the partitions of a table share, and the traffic of its keys.

The limits of a table (``throttle.py``) are the only state that its partitions share. They are used
on the event loop:

- A write is refused before any work if its partition has no units left.
- A write takes its units between decision and commit, from the table and from each index that it
  changes, or from none. Units of a commit that the store refuses are given back.
- A read takes its units when its size is known. After a refused read, the partition checks further
  reads before any work. A page is checked by each partition that it reads; a refused page has paid
  no partition.
- A backfill takes the units of its index that writes leave.

``model/throttling/`` has the arithmetic, tested in a simulation on virtual time. It also moves
unused units to a busy partition.

``burst_balances.py`` stores the unused units of partitions in the background. A partition with a
full balance has no row, so new and idle tables cost nothing. A balance that falls below the stored
value is stored at once, less a reserve. All rows are updated every ten seconds. So a stored value
exceeds the true balance only for the duration of a sync, and repeated crashes gain no units.

``traffic.py`` counts which keys requests use, by minute, in bounded memory: all requests with
Contributor Insights, otherwise a sample. Requests of tools (``api/requests/maintenance_header.py``)
do not count.
"""
