"""The tests' broker for manual tests: ``python -m tests.support.kafka``, until Ctrl-C."""

from __future__ import annotations

import signal
import sys
import tempfile
from pathlib import Path

from tests.support.kafka.kafka_broker import running_broker

# The port in the guide, so its commands can be copied unchanged.
_GUIDE_PORT = 9092


def _main() -> None:
    """Run a broker with its data in a temporary directory."""
    with (
        tempfile.TemporaryDirectory(prefix="kafka-") as directory,
        running_broker(Path(directory), preferred_port=_GUIDE_PORT) as broker,
    ):
        # Block the signals only now, because the broker's process would inherit the signal mask.
        stop_signals = {signal.SIGINT, signal.SIGTERM}
        signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)
        servers = broker.bootstrap_servers
        sys.stdout.write(
            f"Kafka listens on {servers}; Ctrl-C ends it and deletes its data\n"
            "Publish all tables there:\n"
            f"  dynactor serve --kafka-all-tables --kafka-bootstrap-servers {servers}\n"
        )
        sys.stdout.flush()
        signal.sigwait(stop_signals)


if __name__ == "__main__":
    _main()
