"""The credentials file: valid content, and the errors for invalid files."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynactor.api.keys.access_keys import (
    BadCredentialsFile,
    Profile,
    access_keys,
    own_access_key,
    read_profiles,
)
from dynactor.api.keys.signature import AccessKey
from dynactor.api.options.read_settings import read_settings

PROFILE = "[{}]\naws_access_key_id = {}\naws_secret_access_key = {}\n"


@pytest.fixture
def write(tmp_path: Path):
    def written(text: str) -> Path:
        path = tmp_path / "credentials"
        path.touch(0o600)
        path.write_text(text)
        return path

    return written


def test_each_profile_has_a_key(write):
    text = PROFILE.format("default", "A1", "se%cr/et;+=1") + PROFILE.format("ops", "A2", "two")
    assert access_keys(read_profiles(write(text))) == (
        AccessKey("A1", "se%cr/et;+=1"),
        AccessKey("A2", "two"),
    )


def test_a_profile_without_a_key_and_other_settings_are_ignored(write):
    text = "# ours\n[sso]\nregion = eu-west-1\n" + PROFILE.format("a", "A1", "one")
    assert access_keys(read_profiles(write(text))) == (AccessKey("A1", "one"),)


def test_one_key_may_be_in_two_profiles(write):
    text = PROFILE.format("a", "A1", "one") + PROFILE.format("b", "A1", "one")
    assert access_keys(read_profiles(write(text))) == (AccessKey("A1", "one"),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no profile"),
        ("[a]\n", "has no profile"),
        ("[a]\naws_access_key_id = A1\n", "[a] needs both"),
        ("[a]\naws_secret_access_key = top-secret\n", "[a] needs both"),
        (PROFILE.format("a", "A1", "top-secret") + PROFILE.format("b", "A1", "x"), "two secrets"),
        ("aws_secret_access_key = top-secret\n", "no credentials file"),
        ("[a]\ntop-secret\n", "no credentials file"),
        (PROFILE.format("a", "A1", "top-secret") * 2, "no credentials file"),
        (PROFILE.format("a", "A/1", "top-secret"), "[a] can't be written into a signature"),
        (PROFILE.format("a", "A1,", "top-secret"), "[a] can't be written into a signature"),
        (PROFILE.format("a", "A 1", "top-secret"), "[a] can't be written into a signature"),
        (PROFILE.format("a", "Ä1", "top-secret"), "[a] can't be written into a signature"),
        (PROFILE.format("a", "A1\n more", "top-secret"), "[a] can't be written into a signature"),
        (PROFILE.format("a", "A1", "top-secret\n region = b"), "[a] has more than one line"),
    ],
)
def test_an_unusable_file_is_reported_without_its_secrets(write, text: str, words: str):
    with pytest.raises(BadCredentialsFile) as caught:
        read_profiles(write(text))
    assert words in str(caught.value)
    assert "top-secret" not in str(caught.value)


def test_the_error_for_a_missing_file_names_it(tmp_path: Path):
    with pytest.raises(BadCredentialsFile, match="No such file"):
        read_profiles(tmp_path / "none")


def test_the_file_is_read_once(write):
    path = write(PROFILE.format("a", "A1", "one"))
    settings = read_settings(credentials_file=path)
    # Empty the file, because a second read of a pipe would find no data.
    path.write_text("")
    assert settings.keys.access_keys == (AccessKey("A1", "one"),)


def test_binary_data_is_reported(tmp_path: Path):
    path = tmp_path / "credentials"
    path.touch(0o600)
    path.write_bytes(b"\xff\xfe[a]")
    with pytest.raises(BadCredentialsFile, match="can't be read"):
        read_profiles(path)


def test_commands_use_the_access_key_of_the_environment():
    assert own_access_key({"AWS_ACCESS_KEY_ID": "A1", "AWS_SECRET_ACCESS_KEY": "one"}) == (
        AccessKey("A1", "one")
    )
    assert own_access_key({"AWS_ACCESS_KEY_ID": "A1"}) is None
    assert own_access_key({}) is None


def test_a_profile_names_policies_and_tags(write):
    text = PROFILE.format("a", "A1", "one") + "policies = readers, own-items,\ntags = team = blue\n"
    key = AccessKey("A1", "one")
    assert read_profiles(write(text)) == (
        Profile("a", key, ("readers", "own-items"), {"team": "blue"}),
    )


def test_one_key_has_the_same_policies_in_two_profiles(write):
    text = PROFILE.format("a", "A1", "one") + "policies = x\n" + PROFILE.format("b", "A1", "one")
    with pytest.raises(BadCredentialsFile, match="A1 has different policies, tags or limits in"):
        read_profiles(write(text))


def test_a_tag_has_a_value(write):
    with pytest.raises(BadCredentialsFile, match="must be KEY=VALUE"):
        read_profiles(write(PROFILE.format("a", "A1", "one") + "tags = blue\n"))
