"""HTTP and the JSON 1.0 protocol: connections, messages, compression, browser access.

SDKs send plain POST requests of known length. The fast lane (``fast_lane.py``) reads and answers
them directly. Any other HTTP goes to the full lane, which is aiohttp (``aiohttp_lane.py``) behind
reads of bounded size (``bounded_reads.py``). An operation that does not wait returns the answer's
body at once. Any other operation returns an awaitable, which the connection's task awaits. All
answers that are ready in one turn of the event loop are sent at the end of the turn.

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
keys, ``api/keys/signature.py`` verifies each request before its body is decompressed or decoded,
and the head of a large request before its body is read. On loopback the Host header must be an IP
address, localhost or a configured name, so a web page can't reach the server through DNS rebinding.
Web pages of other origins can read answers only if the origin is configured
(``browser_access.py``).

A request only adds its latency to a histogram or its error to a count (``request_figures.py``).
``request_log.py`` writes its log line, for errors at most 20 a second.
"""
