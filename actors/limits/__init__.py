"""The capacity limits that the partitions of a table share, and the traffic of its keys."""
