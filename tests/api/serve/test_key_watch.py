"""Access keys are added and revoked without a restart."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog

from dynactor.api.keys.access_keys import access_keys, read_profiles
from dynactor.api.keys.signature import AccessKey, Signatures, authorization
from dynactor.api.serve.key_watch import key_watch
from dynactor.model.errors import UnrecognizedClientException

ONE, OTHER = AccessKey("AKIDONE", "secret-one"), AccessKey("AKIDOTHER", "secret-other")
HEADERS = {"host": "localhost", "x-amz-target": "DynamoDB_20120810.ListTables"}


def text_of(*keys: AccessKey) -> str:
    return "".join(
        f"[{key.access_key_id}]\naws_access_key_id = {key.access_key_id}\n"
        f"aws_secret_access_key = {key.secret_access_key}\n"
        for key in keys
    )


def is_accepted(signatures: Signatures, key: AccessKey) -> bool:
    signed = HEADERS | authorization(key, "us-east-1", HEADERS, b"{}", datetime.now(UTC))
    try:
        signatures.check(signed, "", b"{}", time.time())
    except UnrecognizedClientException:
        return False
    return True


def test_keys_are_added_and_revoked_when_the_file_changes(tmp_path: Path):
    path = tmp_path / "keys"
    path.touch(0o600)
    path.write_text(text_of(ONE))
    signatures = Signatures(access_keys(read_profiles(path)))
    watch = key_watch(path, signatures)
    assert watch is not None
    assert [is_accepted(signatures, key) for key in (ONE, OTHER)] == [True, False]
    path.write_text(text_of(ONE, OTHER))
    watch.check()
    assert [is_accepted(signatures, key) for key in (ONE, OTHER)] == [True, True]
    path.write_text(text_of(OTHER))
    watch.check()
    assert [is_accepted(signatures, key) for key in (ONE, OTHER)] == [False, True]


@pytest.mark.parametrize("text", ["", "[one]\naws_access_key_id = AKIDOTHER\n", None])
def test_a_broken_or_missing_file_keeps_the_keys_and_logs_no_secret(
    text: str | None, tmp_path: Path
):
    path = tmp_path / "keys"
    path.touch(0o600)
    path.write_text(text_of(ONE))
    signatures = Signatures(access_keys(read_profiles(path)))
    watch = key_watch(path, signatures)
    assert watch is not None
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    with structlog.testing.capture_logs() as logs:
        watch.check()
        watch.check()
    assert [line["event"] for line in logs] == ["access_keys_unchanged"]
    assert "secret-one" not in str(logs)
    assert is_accepted(signatures, ONE)


def test_a_pipe_is_not_watched(tmp_path: Path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert key_watch(path, Signatures((ONE,))) is None


def test_a_file_that_other_users_may_read_keeps_the_keys(tmp_path: Path):
    path = tmp_path / "keys"
    path.touch(0o600)
    path.write_text(text_of(ONE))
    signatures = Signatures((ONE,))
    watch = key_watch(path, signatures)
    assert watch is not None
    path.write_text(text_of(OTHER))
    path.chmod(0o604)
    with structlog.testing.capture_logs() as lines:
        watch.check()
    (line,) = lines
    assert line["event"] == "access_keys_unchanged"
    assert f"chmod 600 {path}" in line["reason"]
    assert is_accepted(signatures, ONE)
