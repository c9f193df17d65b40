"""The credentials file is readable by its owner only, or encrypted."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dynactor.api.keys.key_file import BadKeyFile, check_mode, encrypted, read_text
from dynactor.api.options.read_settings import read_settings
from dynactor.model.configuration_error import ConfigurationError
from tests.support.servers.server import run_command

TEXT = "[app]\naws_access_key_id = AKIDAPP\naws_secret_access_key = top-secret\n"
SECRET = "0123456789abcdef"
SERVER, OTHER, ROOT = 1000, 1001, 0


def status_of(mode: int, owner: int, kind: int = stat.S_IFREG) -> os.stat_result:
    return os.stat_result((kind | mode, 0, 0, 1, owner, 0, 0, 0, 0, 0))


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    path.touch(0o600)
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize(
    ("mode", "owner", "command"),
    [
        (0o600, SERVER, ""),
        (0o400, SERVER, ""),
        (0o640, SERVER, "chmod 600 keys"),
        (0o604, SERVER, "chmod 600 keys"),
        (0o602, SERVER, "chmod 600 keys"),
        (0o440, ROOT, ""),
        (0o460, ROOT, "chmod 600 keys"),
        (0o444, ROOT, "chmod 600 keys"),
        (0o600, OTHER, "chown 1000 keys"),
    ],
)
def test_a_file_that_others_may_read_or_change_is_refused(mode: int, owner: int, command: str):
    if not command:
        check_mode(Path("keys"), status_of(mode, owner), SERVER)
        return
    with pytest.raises(BadKeyFile, match=f"run {command}"):
        check_mode(Path("keys"), status_of(mode, owner), SERVER)


def test_a_pipe_may_have_any_mode():
    check_mode(Path("keys"), status_of(0o666, OTHER, stat.S_IFIFO), SERVER)
    with pytest.raises(BadKeyFile):
        check_mode(Path("keys"), status_of(0o666, OTHER, stat.S_IFREG), SERVER)


def test_a_server_with_an_exposed_file_does_not_start(keys: Path):
    keys.chmod(0o644)
    done = run_command("serve", "--in-memory", "--credentials-file", str(keys))
    assert done.returncode == 1
    assert f"run chmod 600 {keys}" in done.stderr
    assert "top-secret" not in done.stderr


def test_a_server_reads_what_the_command_has_encrypted(keys: Path, tmp_path: Path):
    key_file, file = tmp_path / "key", tmp_path / "keys.encrypted"
    key_file.touch(0o600)
    key_file.write_text(SECRET)
    done = run_command("encrypt-keys", str(keys), "--credentials-key-file", str(key_file))
    assert done.returncode == 0
    assert "top-secret" not in done.stdout
    file.write_text(done.stdout)
    settings = read_settings(credentials_file=file, credentials_key_file=key_file)
    assert settings.keys.access_keys == (("AKIDAPP", "top-secret"),)
    key_file.chmod(0o644)
    with pytest.raises(ConfigurationError, match="--credentials-key-file: Other users"):
        read_settings(credentials_file=file, credentials_key_file=key_file)


def test_an_encrypted_file_needs_its_secret(keys: Path, tmp_path: Path):
    file = tmp_path / "keys.encrypted"
    content = encrypted(TEXT, SECRET)
    assert content != encrypted(TEXT, SECRET)
    file.write_bytes(content)
    assert read_text(file, SECRET) == TEXT
    with pytest.raises(BadKeyFile, match="give --credentials-key-file"):
        read_text(file)
    with pytest.raises(BadKeyFile, match="can't be decrypted"):
        read_text(file, SECRET[::-1])
    with pytest.raises(BadKeyFile, match="is not encrypted"):
        read_text(keys, SECRET)
    for damaged in (content[:-20] + b"A" + content[-19:], content[:40], content[:30] + b"\xff"):
        file.write_bytes(damaged)
        with pytest.raises(BadKeyFile, match="damaged"):
            read_text(file, SECRET)
