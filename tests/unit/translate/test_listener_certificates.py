"""Certificates that listeners name: objects in, the condition `ResolvedRefs` of the listener out."""

from __future__ import annotations

import base64
import datetime
from functools import cache
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.fakes.certificates import HUGE, Authority
from tests.fakes.web_objects import CLASS
from tests.unit.translate.golden import World, objects

GATEWAY = (
    CLASS
    + """---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra}
spec:
  gatewayClassName: gatewright
  listeners:
  - name: https
    protocol: HTTPS
    port: 443
    tls: {certificateRefs: [%s]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: infra}
spec:
  parentRefs: [{name: edge}]
  rules: [{backendRefs: [{name: shop, port: 80}]}]
"""
)
GRANT = """
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata: {name: g, namespace: other}
spec:
  from: [{group: gateway.networking.k8s.io, kind: %s, namespace: infra}]
  to: [{group: "", kind: Secret}]
"""


@cache
def pair(number: int) -> tuple[bytes, bytes]:
    """A certificate and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{number}.example.com")])
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(number)
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=9000))
        .sign(key, hashes.SHA256())
    )
    plain = serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return certificate.public_bytes(serialization.Encoding.PEM), text


def locked(text: bytes) -> bytes:
    key = serialization.load_pem_private_key(text, None)
    lock = serialization.BestAvailableEncryption(b"secret")
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock)


def secret(namespace: str, **entries: bytes) -> str:
    data = ", ".join(f"tls.{name}: {base64.b64encode(value).decode()}" for name, value in entries.items())
    return f"apiVersion: v1\nkind: Secret\nmetadata: {{name: cert, namespace: {namespace}}}\ndata: {{{data}}}\n"


def listener(references: str, *further: str) -> dict[str, Any]:
    """The status of the listener."""
    world = World()
    world.apply(objects("---\n".join([GATEWAY % references, *further])))
    status = world.program.status("Gateway", "infra", "edge")
    assert status is not None
    (entry,) = status["listeners"]
    return dict(entry)


def resolved(entry: dict[str, Any]) -> tuple[str, str, str]:
    (found,) = [each for each in entry["conditions"] if each["type"] == "ResolvedRefs"]
    return found["status"], found["reason"], found["message"]


CRT, KEY = pair(1)
NOT_PERMITTED = "no ReferenceGrant in namespace other permits Gateways of namespace infra"


@pytest.mark.parametrize(
    ("references", "further", "reason", "message"),
    [
        ("{name: cert}", [], "InvalidCertificateRef", "Secret infra/cert does not exist"),
        ("{name: cert, kind: ConfigMap}", [], "InvalidCertificateRef", "ConfigMap cert: certificates are in Secrets"),
        ("{name: cert, group: a.b}", [], "InvalidCertificateRef", "Secret cert: certificates are in Secrets"),
        ("{name: cert, namespace: other}", [], "RefNotPermitted", f"Secret other/cert: {NOT_PERMITTED}"),
        (
            "{name: cert, namespace: other}",
            [secret("other", crt=CRT, key=KEY)],
            "RefNotPermitted",
            f"Secret other/cert: {NOT_PERMITTED}",
        ),
        (
            "{name: cert, namespace: other}",
            [GRANT % "ListenerSet"],
            "RefNotPermitted",
            f"Secret other/cert: {NOT_PERMITTED}",
        ),
        (
            "{name: cert, namespace: other}",
            [GRANT % "Gateway"],
            "InvalidCertificateRef",
            "Secret other/cert does not exist",
        ),
        ("{name: cert}", [secret("infra", crt=CRT)], "InvalidCertificateRef", "Secret infra/cert has no entry tls.key"),
        (
            "{name: cert}",
            [secret("infra")],
            "InvalidCertificateRef",
            "Secret infra/cert has no entry tls.crt and tls.key",
        ),
        (
            "{name: cert}",
            [secret("infra", crt=b"hello", key=KEY)],
            "InvalidCertificateRef",
            "Secret infra/cert has an entry tls.crt that is no certificate in PEM form",
        ),
        *(
            (
                "{name: cert}",
                [secret("infra", crt=chain, key=text)],
                "InvalidCertificateRef",
                f"Secret infra/cert has an entry {entry} that is longer than {longest} bytes",
            )
            for chain, text, entry, longest in (
                (CRT, KEY + b"\n" * 16_384, "tls.key", 16_384),
                (CRT + b"\n" * 262_144, KEY, "tls.crt", 262_144),
            )
        ),
        *(
            (
                "{name: cert}",
                [secret("infra", crt=CRT, key=text)],
                "InvalidCertificateRef",
                "Secret infra/cert has an entry tls.key that is no private key in PEM form without a password",
            )
            for text in (b"hello", CRT, locked(KEY))
        ),
        (
            "{name: cert}",
            [secret("infra", crt=CRT, key=pair(2)[1])],
            "InvalidCertificateRef",
            "Secret infra/cert has an entry tls.key that does not belong to the certificate",
        ),
        (
            "{name: none}, {name: cert, namespace: other}",
            [],
            "RefNotPermitted",
            f"Secret infra/none does not exist; Secret other/cert: {NOT_PERMITTED}",
        ),
    ],
)
def test_what_cannot_be_used(references: str, further: list[str], reason: str, message: str) -> None:
    entry = listener(references, *further)
    assert resolved(entry) == ("False", reason, message)
    assert [each["kind"] for each in entry["supportedKinds"]] == ["HTTPRoute", "GRPCRoute"]
    assert entry["attachedRoutes"] == 1


@pytest.mark.parametrize(
    ("references", "further"),
    [
        ("{name: cert}", [secret("infra", crt=CRT, key=KEY)]),
        ("{name: cert}", [secret("infra", crt=CRT + pair(2)[0], key=KEY)]),
        ("{name: cert, namespace: other}", [secret("other", crt=CRT, key=KEY), GRANT % "Gateway"]),
    ],
)
def test_what_can_be_used(references: str, further: list[str]) -> None:
    assert resolved(listener(references, *further)) == ("True", "ResolvedRefs", "")


def test_it_follows_the_secret_and_the_grant() -> None:
    world = World()
    world.apply(objects(GATEWAY % "{name: cert, namespace: other}"))

    def reason() -> str:
        status = world.program.status("Gateway", "infra", "edge")
        assert status is not None
        return resolved(dict(status["listeners"][0]))[1]

    said = [reason()]
    grant = objects(GRANT % "Gateway")
    for edit in (grant, objects(secret("other", crt=CRT, key=KEY)), [(*grant[0][:2], None)]):
        world.apply(edit)
        said.append(reason())
    assert said == ["RefNotPermitted", "InvalidCertificateRef", "ResolvedRefs", "RefNotPermitted"]


def test_no_value_of_a_secret_is_told() -> None:
    value = b"-----BEGIN CERTIFICATE-----\nVERYSECRET\n-----END CERTIFICATE-----\n"
    entry = listener("{name: cert}", secret("infra", crt=value, key=value))
    assert "VERYSECRET" not in str(entry)


def test_a_key_that_proxies_would_sign_with_for_too_long_is_refused() -> None:
    issued = Authority().issue("shop.example", kind=HUGE)
    entry = listener("{name: cert}", secret("infra", crt=issued.chain, key=issued.key))
    message = "Secret infra/cert has an entry tls.key that is an RSA key of 14112 bits; 2048 to 8192 are taken"
    assert resolved(entry) == ("False", "InvalidCertificateRef", message)
