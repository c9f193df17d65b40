"""HTTP and the JSON 1.0 protocol: connections, messages, compression, signatures, access.

SDKs send plain POST requests of known length. The fast lane (``fast_lane.py``) reads and answers
them directly. Any other HTTP goes to aiohttp (``aiohttp_lane.py``), read in small pieces
(``bounded_reads.py``). An operation that does not wait returns its body, and the answer goes out
while the request's bytes are still being handled. Another operation returns an awaitable for the
connection's task. Answers that are ready in one turn of the event loop are sent together at its
end.

Memory and fairness:

- Pipelined requests of all connections take turns (``pipelining.py``). A closed connection drops
  its requests.
- A request over 64 KB reserves its whole size before its body is read (``body_memory.py``), a
  compressed one its decompressed size. The sum over all connections is limited to a share of the
  memory. While others wait, a client must send at a minimum rate or its connection is closed.
  Requests that fail on their headers reserve nothing, and their body is not buffered.
- The body of a refused request is read at a bounded rate (``drain_body.py``), so that the client
  sees the error.
- Answers that clients do not read have a limit too (``unsent_answers.py``). Above it, the
  connections that have waited longest are aborted.

Access: the server listens on loopback. Another address needs access keys or ``--allow-open``. With
keys, ``signature.py`` verifies each request before its body is inflated or decoded, and the head
of a large request before its body is read. On loopback the Host header must be an IP address,
localhost or a configured name, so no web page reaches the server under a name of its own.
Cross-origin answers are for configured origins (``browser_access.py``).

A request only adds its latency to a histogram or its error to a count (``request_figures.py``).
``request_log.py`` writes its log line, for errors at most 20 a second.
"""
