"""Policies from files: the options, mistakes at start, and changes while the server runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import structlog

from dynactor.api.access.identities import Identities, IdentityRegistry
from dynactor.api.access.policy_files import BadPolicyFile, read_identities
from dynactor.api.keys.access_keys import access_keys, read_profiles
from dynactor.api.keys.session_tokens import SessionTokens
from dynactor.api.keys.signature import Signatures
from dynactor.api.options.read_settings import read_settings
from dynactor.api.serve.key_watch import key_watch
from dynactor.model.configuration_error import ConfigurationError
from tests.support.access.deciding import ALLOWED, decision

KEYS = (
    "[app]\naws_access_key_id = AKIDAPP\naws_secret_access_key = secret\npolicies = readers\n"
    "[other]\naws_access_key_id = AKIDOTHER\naws_secret_access_key = secret\n"
)


def policy_text(action: str) -> str:
    statement = {"Effect": "Allow", "Action": action, "Resource": "*"}
    return json.dumps({"Version": "2012-10-17", "Statement": statement}, indent=1)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    credentials, policies = tmp_path / "keys", tmp_path / "policies"
    credentials.touch(0o600)
    credentials.write_text(KEYS)
    policies.mkdir()
    (policies / "readers.json").write_text(policy_text("dynamodb:Get*"))
    return credentials, policies


def actions_of(identities: Identities) -> dict[str, list[str]]:
    names = ["dynamodb:GetItem", "dynamodb:Scan"]
    return {
        key: [name for name in names if decision(of_key, name) == ALLOWED]
        for key, of_key in identities.users.items()
    }


def test_profiles_name_their_policies(files: tuple[Path, Path]):
    credentials, policies = files
    identities = read_settings(
        credentials_file=credentials, policy_dir=policies
    ).policies.identities
    assert actions_of(identities) == {
        "AKIDAPP": ["dynamodb:GetItem"],
        "AKIDOTHER": [],
    }
    everything = ["dynamodb:GetItem", "dynamodb:Scan"]
    identities = read_settings(credentials_file=credentials).policies.identities
    assert actions_of(identities) == {
        "AKIDAPP": everything,
        "AKIDOTHER": everything,
    }


def test_policies_need_access_keys(files: tuple[Path, Path]):
    with pytest.raises(ConfigurationError, match="--policy-dir needs --credentials-file"):
        read_settings(policy_dir=files[1])
    with pytest.raises(ConfigurationError, match="--explain-access explains policies: give"):
        read_settings(explain_access=True)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("more.json", policy_text("dynamodb:Gte"), "more.json:5: dynamodb:Gte is not an action"),
        ("more.json", "{", "more.json:1: this is not JSON"),
        ("more.json", "\ud800", "can't be read"),
        ("readers.json", None, "names the policy readers, but"),
    ],
)
def test_a_mistake_is_found_at_start(
    files: tuple[Path, Path], name: str, text: str | None, message: str
):
    path = files[1] / name
    if text is None:
        path.unlink()
    else:
        path.write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(ConfigurationError, match=message):
        read_settings(credentials_file=files[0], policy_dir=files[1])


def test_a_directory_is_needed(files: tuple[Path, Path]):
    with pytest.raises(ConfigurationError, match="is not a directory"):
        read_settings(credentials_file=files[0], policy_dir=files[1] / "none")


def test_a_profile_must_have_a_name_that_users_may_have(files: tuple[Path, Path]):
    files[0].write_text(KEYS.replace("[other]", "[our app]"))
    with pytest.raises(BadPolicyFile, match=r"\[our app\] is no name of a user"):
        read_identities(read_profiles(files[0]), files[1])


def test_policies_change_with_their_files(files: tuple[Path, Path]):
    credentials, policies = files
    registry = IdentityRegistry(Identities({}), SessionTokens(b"key"), "000000000000")
    signatures = Signatures(access_keys(read_profiles(credentials)))
    watch = key_watch(credentials, signatures, policies, registry)
    assert watch is not None
    first = {"AKIDAPP": ["dynamodb:GetItem"], "AKIDOTHER": []}
    assert actions_of(registry.identities) == first
    (policies / "writers.json").write_text(policy_text("dynamodb:*"))
    (policies / "readers.json").write_text("{")
    with structlog.testing.capture_logs() as lines:
        watch.check()
    assert actions_of(registry.identities) == first
    assert [line["event"] for line in lines] == ["access_keys_unchanged"]
    assert "readers.json:1: this is not JSON" in lines[0]["reason"]
    (policies / "readers.json").write_text(policy_text("dynamodb:Scan"))
    credentials.write_text(KEYS + "policies = writers\n")
    watch.check()
    assert actions_of(registry.identities) == {
        "AKIDAPP": ["dynamodb:Scan"],
        "AKIDOTHER": ["dynamodb:GetItem", "dynamodb:Scan"],
    }
    # A profile names a policy whose file is gone.
    (policies / "writers.json").unlink()
    watch.check()
    assert actions_of(registry.identities)["AKIDOTHER"] == ["dynamodb:GetItem", "dynamodb:Scan"]


ROLE = {
    "TrustPolicy": {
        "Statement": {
            "Effect": "Allow",
            "Principal": {"AWS": "000000000000"},
            "Action": "sts:AssumeRole",
        }
    },
    "Policies": ["readers"],
    "Tags": {"team": "blue"},
    "MaxSessionDuration": 7200,
}


def test_roles_are_files(files: tuple[Path, Path]):
    (files[1] / "roles").mkdir()
    (files[1] / "roles" / "reader.json").write_text(json.dumps(ROLE))
    role = read_identities(read_profiles(files[0]), files[1]).roles["reader"]
    assert (role.name, role.tags, role.max_session_seconds) == ("reader", {"team": "blue"}, 7200)
    assert [one.name for one in role.policies] == ["readers"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Policies": ["none"]}, "names the policy none, but"),
        ({"Polices": []}, "reader.json:1: Polices is not a member of a role"),
        ({"MaxSessionDuration": 60}, "reader.json: Expected `int` >= 3600"),
        ({"TrustPolicy": {"Statement": []}}, "reader.json:1: the policy has no Statement"),
    ],
)
def test_a_mistake_in_a_role_is_found(files: tuple[Path, Path], change: object, message: str):
    (files[1] / "roles").mkdir()
    (files[1] / "roles" / "reader.json").write_text(json.dumps(ROLE | change))
    with pytest.raises(BadPolicyFile, match=message):
        read_identities(read_profiles(files[0]), files[1])
