"""Which clients may change settings over the admin port."""

from __future__ import annotations

import pytest

from dynactor.api.admin.change_rules import caller_of, change_refusal

SECRET = "0123456789abcdef"
HEADERS = {"X-Dynactor-Admin": "1", "Host": "localhost:8001"}
ELSEWHERE = "192.0.2.7"


def status(peer: str | None, secret: str | None = None, **headers: str) -> int:
    """The status of a change: 200, or the status of the refusal."""
    refusal = change_refusal("POST", HEADERS | headers, peer, secret)
    return 200 if refusal is None else refusal.status


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
    "authorization", ["", "Bearer", "Bearer ", SECRET, f"Basic {SECRET}", f"Bearer {SECRET[:-1]}"]
)
def test_a_wrong_secret_is_refused(authorization: str) -> None:
    assert status(ELSEWHERE, SECRET, Authorization=authorization) == 401


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reads_need_no_secret(method: str) -> None:
    assert change_refusal(method, {}, ELSEWHERE, SECRET) is None


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_every_other_method_needs_the_header(method: str) -> None:
    refusal = change_refusal(method, {"Host": "localhost"}, "127.0.0.1", None)
    assert refusal is not None
    assert refusal == (403, "A change needs the header X-Dynactor-Admin: 1")


def test_a_page_of_another_site_may_not_change_anything() -> None:
    for origin in ("http://evil.example", "http://localhost", "null"):
        assert status("127.0.0.1", Origin=origin) == 403
    assert status("127.0.0.1", Origin="http://localhost:8001") == 200


def test_a_page_that_has_signed_in_needs_no_secret_but_the_header_and_its_own_origin() -> None:
    def refused(**headers: str) -> bool:
        given = HEADERS | headers
        return change_refusal("POST", given, ELSEWHERE, SECRET, is_signed_in=True) is not None

    assert not refused(Origin="http://localhost:8001")
    assert refused(Origin="http://evil.example")
    assert refused(**{"X-Dynactor-Admin": ""})


@pytest.mark.parametrize(
    ("peer", "authorization", "is_signed_in", "caller"),
    [
        ("127.0.0.1", "", False, "same machine"),
        (ELSEWHERE, f"Bearer {SECRET}", False, "secret"),
        ("127.0.0.1", f"Bearer {SECRET}", True, "secret"),
        (ELSEWHERE, "", True, "console"),
        (ELSEWHERE, "Bearer other", False, "unknown"),
        (None, "", False, "unknown"),
    ],
)
def test_the_log_names_the_proof_of_a_caller(
    peer: str | None, authorization: str, is_signed_in: bool, caller: str
) -> None:
    headers = {"Authorization": authorization}
    assert caller_of(headers, peer, SECRET, is_signed_in=is_signed_in) == caller
    assert caller_of(headers, peer, None, is_signed_in=is_signed_in) != "secret"
