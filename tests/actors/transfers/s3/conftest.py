"""A real server with the protocol of S3: versitygw, if the machine has it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final, NamedTuple
from uuid import uuid4

import boto3
import pytest
from botocore.config import Config

from tests.support.environment.hanging import HANG_SECONDS
from tests.support.environment.left_out import leave_out
from tests.support.environment.unused_ports import unused_ports

_PROGRAM: Final = os.environ.get("DYNACTOR_TEST_VERSITYGW") or shutil.which("versitygw")
_ACCESS: Final = "tester"
_SECRET: Final = "a-secret-of-tests"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the tests if there is no such server."""
    if _PROGRAM is not None or collection_path.suffix != ".py":
        return None
    leave_out(
        config,
        "tests/actors/transfers/s3: needs versitygw (github.com/versity/versitygw); put it into "
        "the PATH, or name it in DYNACTOR_TEST_VERSITYGW, and run make test-buckets",
    )
    return True


class S3Server(NamedTuple):
    """A running server, and a client of it."""

    endpoint: str
    client: Any
    process: subprocess.Popen[bytes]

    def new_bucket(self) -> str:
        """Create a bucket, and return its name."""
        name = f"bucket-{uuid4().hex[:12]}"
        self.client.create_bucket(Bucket=name)
        return name

    def keys(self, bucket: str) -> list[str]:
        """The keys of a bucket."""
        answer = self.client.list_objects_v2(Bucket=bucket)
        return [each["Key"] for each in answer.get("Contents", ())]

    def uploads(self, bucket: str) -> list[Any]:
        """The uploads that are neither complete nor aborted."""
        return list(self.client.list_multipart_uploads(Bucket=bucket).get("Uploads", ()))


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """A new server with its address and credentials in the environment."""
    assert _PROGRAM is not None
    (port,) = unused_ports(1)
    files, metadata = tmp_path / "s3", tmp_path / "metadata"
    files.mkdir()
    metadata.mkdir()
    command = [_PROGRAM, "--port", f"127.0.0.1:{port}", "--access", _ACCESS, "--secret", _SECRET]
    command += ["posix", "--sidecar", str(metadata), str(files)]
    endpoint = f"http://127.0.0.1:{port}"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", _ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", _SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    log = (tmp_path / "log").open("wb")
    process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_until_open(port, process)
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id=_ACCESS,
            aws_secret_access_key=_SECRET,
            config=Config(s3={"addressing_style": "path"}),
        )
        yield S3Server(endpoint, client, process)
    finally:
        process.kill()
        process.wait()
        log.close()


def _wait_until_open(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = monotonic() + HANG_SECONDS
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, "versitygw has ended"
        assert monotonic() < deadline, "versitygw does not listen"
        sleep(0.05)
