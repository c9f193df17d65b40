"""A transaction that is retried after an upgrade is not executed again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.servers.upgraded import Written, in_order, scanned, upgraded, written_by_6ee0983

TOKENS = written_by_6ee0983().tokens
TEN_MINUTES = 600
NAME = "Accounts"


@pytest.mark.parametrize("sent", TOKENS, ids=lambda sent: sent["operation"])
def test_a_client_token_is_valid_for_ten_minutes_across_an_upgrade(
    written: Written, directory: Path, sent
):
    before = in_order(written.items[NAME])
    with upgraded(written, directory) as server:
        server.wire(sent["operation"], sent["done"])
        assert in_order(scanned(server.wire, NAME)) == before
        refused = server.wire.refused(sent["operation"], sent["other"])
        assert refused.type == "IdempotentParameterMismatchException"
        assert in_order(scanned(server.wire, NAME)) == before
        server.clock.step(TEN_MINUTES)
        server.wire(sent["operation"], sent["done"])
        assert in_order(scanned(server.wire, NAME)) != before
