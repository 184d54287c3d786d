"""What the xDS listener shows and asks for, by the options of a controller."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from controlplane.settings import Security, Settings
from controlplane.xds.trust.certificates import Certificates, Files
from controlplane.xds.trust.exposure import Exposed
from controlplane.xds.trust.issuer import Issuer
from controlplane.xds.xds_settings import XdsSettings, made_of
from tests.unit.xds.test_certificates import files_in


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return files_in(tmp_path)


def made(security: Security, issuer: Issuer | None = None) -> XdsSettings:
    return made_of(Settings(Path("folder"), Path("socket"), ("127.0.0.1", 7), security=security), issuer)


def test_without_options_it_is_plain_and_has_no_resources_over_tcp() -> None:
    found = made(Security())
    assert (found.unix_path, found.tcp) == (Path("socket"), ("127.0.0.1", 7))
    assert (found.resources_over_tcp, found.certificates, found.tokens) == (False, None, None)


def test_resources_over_plain_tcp_for_who_asks() -> None:
    assert made(Security(insecure=True)).resources_over_tcp


def test_files_of_a_certificate_are_what_it_shows(files: Files) -> None:
    found = made(Security(files.certificate, files.key, files.client_authority))
    assert isinstance(found.certificates, Certificates)
    assert (found.resources_over_tcp, found.tokens) == (False, None)


def test_a_file_of_tokens_is_what_proxies_need(files: Files, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("a" * 40 + " shop/web\n")
    found = made(Security(files.certificate, files.key, token_file=tmp_path / "tokens"))
    assert isinstance(found.certificates, Certificates)
    assert found.tokens is not None


def test_a_cluster_has_an_authority_of_its_own() -> None:
    issuer = Issuer(lambda: datetime.now(UTC))
    found = made(Security(service_accounts=True), issuer)
    assert (found.certificates, found.tokens) == (issuer, None)


def test_half_of_the_options_is_refused() -> None:
    with pytest.raises(Exposed, match="both"):
        made(Security(certificate=Path("tls.crt")))
    with pytest.raises(Exposed, match="both"):
        made(Security(key=Path("tls.key")))
