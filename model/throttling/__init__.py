"""Which request is admitted, and which limit refuses it: token buckets on a time handed in."""
