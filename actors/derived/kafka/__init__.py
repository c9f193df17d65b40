"""Publishing of changes to Kafka: relays, snapshots, replays.

A relay for each destination (``relay.py``) follows all logs of the table in rounds. The logs are
the buffer. ``KafkaSink`` divides a round by the Kafka partitions of its keys, and the positions
move when the whole round is acknowledged. With exactly-once delivery the positions are in the
round's own Kafka transaction, and are read from there at start. ``KafkaSender`` delivers rounds of
relays and replays: it connects to the topic, sends batches that the broker accepts, omits images of
oversized records, and waits before it retries. A ``TopicSession`` is its connection, with a
publisher of its own or the publisher that all relays share. The client library is loaded only when
something is published.

- A log is published after the logs of all its ancestors (``TableProgress``). The relay stores a
  checkpoint at the end of each ancestor's log, which keeps this order after a restart.
- A destination that does not accept records for too long is cut off: its logs are no longer kept.
  When its broker is back, consumers get a gap and then a snapshot.
- A snapshot has positions in the logs, which are read after the commit that starts recording. So
  the logs after these positions have all later changes, and the snapshot leaves out items with
  later changes. The snapshot first waits until the relay follows the logs of all partitions. Its
  progress is not stored: an interrupted snapshot starts again, after another gap.
- A replay (``replay.py``) lives as long as the server and has no stored phase. Its first
  checkpoints are in the commit that makes its table record changes. They are deleted when the
  replay ends, or at the next start.
"""
