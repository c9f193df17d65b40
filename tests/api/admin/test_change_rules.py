"""Which callers may read and change settings over the admin port."""

from __future__ import annotations

import pytest

from dynactor.api.admin.change_rules import refusal
from dynactor.api.admin_api.callers import CallerRules, Level

SECRET = "0123456789abcdef"
READ_SECRET = "fedcba9876543210"
HEADERS = {"X-Dynactor-Admin": "1", "Host": "localhost:8001"}
ELSEWHERE = "192.0.2.7"


def status(
    peer: str | None,
    secret: str | None = None,
    *,
    method: str = "POST",
    rules: CallerRules | None = None,
    page_level: Level = Level.NOTHING,
    **headers: str,
) -> int:
    """The status of a request: 200, or the status of the refusal."""
    rules = rules or CallerRules(secret)
    given = HEADERS | headers
    caller = rules.caller(given, peer, None, page_level)
    refused = refusal(method, given, caller, rules)
    return 200 if refused is None else refused.status


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1"])
def test_the_same_machine_needs_no_secret(peer: str) -> None:
    assert status(peer) == status(peer, SECRET) == 200


@pytest.mark.parametrize("peer", [ELSEWHERE, "fe80::1%eth0", "::ffff:192.0.2.7", None])
def test_another_machine_needs_the_secret(peer: str | None) -> None:
    assert status(peer) == 403
    assert status(peer, SECRET) == 401
    assert status(peer, SECRET, Authorization=f"Bearer {SECRET}") == 200
    # Without a secret, no bearer token is valid.
    assert status(peer, None, Authorization=f"Bearer {SECRET}") == 403


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", SECRET, f"Basic {SECRET}", f"Bearer {SECRET[:-1]}", "Bearer \udcff"],
)
def test_a_wrong_secret_is_refused(authorization: str) -> None:
    assert status(ELSEWHERE, SECRET, Authorization=authorization) == 401


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reads_need_no_secret_unless_there_is_one_for_reading(method: str) -> None:
    assert status(ELSEWHERE, SECRET, method=method) == 200
    for rules in (CallerRules(SECRET, READ_SECRET), CallerRules(has_certificates=True)):
        for peer in (ELSEWHERE, "127.0.0.1"):
            assert status(peer, rules=rules, method=method) == 401
            assert status(peer, rules=rules, method="POST") == 401


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_every_other_method_needs_the_header(method: str) -> None:
    assert status("127.0.0.1", method=method) == 200
    assert status("127.0.0.1", method=method, **{"X-Dynactor-Admin": ""}) == 403


def test_the_secret_for_reading_allows_no_changes() -> None:
    rules = CallerRules(SECRET, READ_SECRET)
    headers = {"Authorization": f"Bearer {READ_SECRET}"}
    assert status("127.0.0.1", rules=rules, method="GET", **headers) == 200
    assert status("127.0.0.1", rules=rules, **headers) == 403


def test_a_page_of_another_site_may_not_change_anything() -> None:
    for origin in ("http://evil.example", "http://localhost", "null"):
        assert status("127.0.0.1", Origin=origin) == 403
    assert status("127.0.0.1", Origin="http://localhost:8001") == 200


def test_a_page_that_has_signed_in_needs_no_secret_but_the_header_and_its_own_origin() -> None:
    def refused(level: Level = Level.FULL, **headers: str) -> bool:
        return status(ELSEWHERE, SECRET, page_level=level, **headers) != 200

    assert not refused(Origin="http://localhost:8001")
    assert refused(Origin="http://evil.example")
    assert refused(**{"X-Dynactor-Admin": ""})
    assert refused(Level.READ, Origin="http://localhost:8001")


@pytest.mark.parametrize(
    ("peer", "authorization", "certificate", "page_level", "proof"),
    [
        ("127.0.0.1", "", None, Level.NOTHING, "same machine"),
        (ELSEWHERE, f"Bearer {SECRET}", None, Level.NOTHING, "secret"),
        ("127.0.0.1", f"Bearer {SECRET}", None, Level.FULL, "secret"),
        (ELSEWHERE, "", None, Level.FULL, "console"),
        (ELSEWHERE, "", "ops", Level.READ, "certificate ops"),
        (ELSEWHERE, "", "reports", Level.FULL, "console"),
        (ELSEWHERE, "Bearer other", None, Level.NOTHING, "unknown"),
        (None, "", None, Level.NOTHING, "unknown"),
    ],
)
def test_the_log_names_the_best_proof_of_a_caller(
    peer: str | None, authorization: str, certificate: str | None, page_level: Level, proof: str
) -> None:
    rules = CallerRules(SECRET, full_names=frozenset({"ops"}))
    headers = {"Authorization": authorization}
    assert rules.caller(headers, peer, certificate, page_level).proof == proof
    assert CallerRules().caller(headers, peer, certificate, page_level).proof != "secret"
