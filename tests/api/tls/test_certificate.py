"""The server's certificate is loaded from files, and loaded again when they change."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import structlog
from cryptography import x509

from dynactor.api.serve.file_watch import FileWatch
from dynactor.api.tls.certificate import BadCertificate, ServerCertificate
from dynactor.api.tls.expiry import certificate_expiry
from dynactor.api.tls.self_signed import RENEWED_DAYS, VALID_DAYS, self_signed_certificate
from tests.support.servers.certificates import certificate_for_tests

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def names_in(certificate: Path) -> set[str]:
    found = x509.load_pem_x509_certificate(certificate.read_bytes())
    given = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in given}


def test_the_expiry_is_the_one_that_the_library_reads():
    certificate = certificate_for_tests().files.certificate.read_text()
    expected = x509.load_pem_x509_certificate(certificate.encode()).not_valid_after_utc
    assert certificate_expiry(certificate) == expected.timestamp()


@pytest.mark.parametrize(
    "text",
    ["", "no certificate", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"],
)
def test_a_text_without_a_certificate_has_no_expiry(text: str):
    with pytest.raises(ValueError, match="certificate"):
        certificate_expiry(text)


def test_a_certificate_with_the_key_of_another_one_is_refused(tmp_path: Path):
    one = self_signed_certificate(tmp_path / "one", ())
    other = self_signed_certificate(tmp_path / "other", ())
    with pytest.raises(BadCertificate, match="the key is not the certificate's"):
        ServerCertificate(one.certificate, other.key)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(BadCertificate, match="No such file"):
        ServerCertificate(tmp_path / "cert.pem", tmp_path / "key.pem")


def test_a_pair_is_replaced_only_when_both_files_have_changed(tmp_path: Path):
    first = self_signed_certificate(tmp_path / "first", (), NOW)
    second = self_signed_certificate(tmp_path / "second", (), NOW + timedelta(days=1))
    certificate = ServerCertificate(first.certificate, first.key, now=NOW.timestamp)
    watch = FileWatch(lambda: certificate.paths, certificate.reload)
    context, expiry = certificate.context, certificate.expires_at_epoch_seconds
    with structlog.testing.capture_logs() as logs:
        watch.check()
        assert logs == []
        shutil.copy(second.certificate, first.certificate)
        watch.check()
        assert [line["event"] for line in logs] == ["certificate_unchanged"]
        assert certificate.context is context
        shutil.copy(second.key, first.key)
        watch.check()
        assert logs[1]["event"] == "certificate_loaded"
    assert certificate.context is not context
    assert certificate.expires_at_epoch_seconds == expiry + timedelta(days=1).total_seconds()


def test_a_development_certificate_is_kept_and_has_the_local_names(tmp_path: Path):
    made = self_signed_certificate(tmp_path, ("db.example.com",), NOW)
    before = {path: path.read_bytes() for path in made}
    assert {"localhost", "127.0.0.1", "::1", "db.example.com"} <= names_in(made.certificate)
    assert made == self_signed_certificate(tmp_path, (), NOW + timedelta(days=1))
    assert {path: path.read_bytes() for path in made} == before
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    found = x509.load_pem_x509_certificate(before[made.certificate])
    assert found.not_valid_after_utc - found.not_valid_before_utc == timedelta(days=VALID_DAYS)


@pytest.mark.parametrize(
    ("names", "days"), [(("other.example.com",), 0), ((), VALID_DAYS - RENEWED_DAYS + 1)]
)
def test_a_development_certificate_is_renewed_by_the_same_authority(
    names: tuple[str, ...], days: int, tmp_path: Path
):
    made = self_signed_certificate(tmp_path, (), NOW)
    authority, certificate = made.authority.read_bytes(), made.certificate.read_bytes()
    self_signed_certificate(tmp_path, names, NOW + timedelta(days=days))
    assert made.authority.read_bytes() == authority
    assert made.certificate.read_bytes() != certificate
    assert names_in(made.certificate) >= set(names)


def test_a_damaged_development_certificate_is_reported(tmp_path: Path):
    made = self_signed_certificate(tmp_path, (), NOW)
    made.certificate.write_text("damaged")
    with pytest.raises(BadCertificate, match="is damaged: remove the directory"):
        self_signed_certificate(tmp_path, (), NOW)


@pytest.mark.parametrize(
    ("left", "events"),
    [
        (timedelta(days=30, seconds=1), []),
        (timedelta(days=30), [("certificate_renewal_needed", 30)]),
        (timedelta(seconds=1), [("certificate_renewal_needed", 0)]),
        (timedelta(), [("certificate_expired", None)]),
        (-timedelta(days=3), [("certificate_expired", None)]),
    ],
)
def test_the_end_of_a_certificate_is_logged_at_the_start_and_at_each_reload(
    left: timedelta, events: list[tuple[str, int | None]], tmp_path: Path
):
    made = self_signed_certificate(tmp_path, (), NOW)
    expiry = certificate_expiry(made.certificate.read_text())
    now = datetime.fromtimestamp(expiry, UTC) - left

    def said(act: Callable[[], object]) -> list[tuple[str, int | None]]:
        with structlog.testing.capture_logs() as logged:
            act()
        assert all(line["path"] == str(made.certificate) for line in logged if "path" in line)
        return [
            (line["event"], line.get("days"))
            for line in logged
            if line["event"] not in ("certificate_loaded", "certificate_unchanged")
        ]

    def load() -> ServerCertificate:
        return ServerCertificate(made.certificate, made.key, now=now.timestamp)

    assert said(load) == events
    certificate = load()
    assert said(certificate.reload) == events
    made.key.write_text("damaged")
    assert said(certificate.reload) == events


def test_a_certificate_with_two_uses_is_logged_once(tmp_path: Path):
    made = self_signed_certificate(tmp_path, (), NOW)
    after = NOW + timedelta(days=2 * VALID_DAYS)
    with structlog.testing.capture_logs() as logged:
        for logs_expiry in (True, False):
            ServerCertificate(
                made.certificate, made.key, logs_expiry=logs_expiry, now=after.timestamp
            )
    assert [line["event"] for line in logged] == ["certificate_expired"]
