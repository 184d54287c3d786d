"""`gatewright init`: a folder to start from, for `gatewright up`."""

from __future__ import annotations

import argparse
import base64
import json
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from controlplane.cli import exits, shipped

BASE: Final = ("gateway.yaml", "shop.yaml", "route.yaml")
"""Files of a folder, but for those of which a template has its own."""
TOKEN_SECONDS: Final = 365 * 86_400
"""How long tokens and certificates of templates are good for."""
JWKS: Final = "{{JWKS}}"
CERTIFICATE: Final = "{{CERTIFICATE}}"
KEY: Final = "{{KEY}}"


@dataclass(frozen=True, slots=True)
class Template:
    """`files`: its own. `fill`: makes the values of names in braces, and the command to try. `example`: the folder of
    `examples` that it is a copy of, which needs no others."""

    files: tuple[str, ...]
    fill: Callable[[Path], tuple[Mapping[str, str], str]]
    """Given the folder."""
    example: str = ""


def _nothing(command: str) -> Callable[[Path], tuple[Mapping[str, str], str]]:
    return lambda _: ({}, command)


def _issuer(_: Path) -> tuple[Mapping[str, str], str]:
    """A key that is nowhere but in the token that it signs."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_numbers()
    x, y = (_text(number.to_bytes(32)) for number in (public.x, public.y))
    keys = {"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "kid": "start", "x": x, "y": y}]}
    now = int(time.time())
    claims = {"iss": "https://issuer.example", "aud": "shop", "sub": "alice", "iat": now, "exp": now + TOKEN_SECONDS}
    signed = ".".join(_text(json.dumps(each).encode()) for each in ({"alg": "ES256", "kid": "start"}, claims))
    r, s = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    token = f"{signed}.{_text(r.to_bytes(32) + s.to_bytes(32))}"
    return {JWKS: json.dumps(keys)}, f"curl -i http://127.0.0.1:8080/ -H 'Authorization: Bearer {token}'"


def _certificate(folder: Path) -> tuple[Mapping[str, str], str]:
    """For localhost, signed by its own key. What believes it reads it out of the folder."""
    import ipaddress
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    names = [x509.DNSName("localhost"), *(x509.IPAddress(ipaddress.ip_address(each)) for each in ("127.0.0.1", "::1"))]
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(seconds=TOKEN_SECONDS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    plain = serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    read = f"sed -n 's/.*tls.crt: //p' {shlex.quote(str(folder / 'certificate.yaml'))} | base64 -d"
    values = {CERTIFICATE: base64.b64encode(pem).decode(), KEY: base64.b64encode(secret).decode()}
    return values, f"curl -i https://localhost:8443/ --cacert <({read})"


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


TEMPLATES: Final[Mapping[str, Template]] = {  # what they are about: `command_options.TEMPLATES`
    "split": Template(
        ("route.yaml", "shop-next.yaml"),
        _nothing("for i in $(seq 10); do curl -s http://127.0.0.1:8080/ | grep server; done"),
    ),
    "ratelimit": Template(
        ("limit.yaml",),
        _nothing("for i in $(seq 11); do curl -s -o /dev/null -w '%{http_code}\\n' http://127.0.0.1:8080/; done"),
    ),
    "jwt": Template(("jwt.yaml",), _issuer),
    "https": Template(("gateway.yaml", "certificate.yaml"), _certificate),
    "llm": Template(
        ("gateway.yaml", "route.yaml", "models.yaml", "demo.yaml"),
        _nothing(
            "curl -i http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json'"
            """ -d '{"model": "fast", "messages": [{"role": "user", "content": "hello"}]}'"""
        ),
        example="llm",
    ),
    "llm-keys": Template(
        ("gateway.yaml", "route.yaml", "models.yaml", "keys.yaml", "policy.yaml", "demo.yaml"),
        _nothing(
            "curl -i http://127.0.0.1:8080/v1/chat/completions -H 'Authorization: Bearer sk-ann'"
            """ -H 'Content-Type: application/json'"""
            """ -d '{"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}]}'"""
        ),
        example="llm-keys",
    ),
}


def run(arguments: argparse.Namespace) -> int:
    """Raises Failure when one of the files is there already; nothing is written then."""
    template = TEMPLATES[arguments.template]
    folder = Path(arguments.dir or arguments.template)
    values, command = template.fill(folder)
    names = dict.fromkeys((*(() if template.example else BASE), *template.files))
    texts = {name: _filled(_source(arguments.template, name), values) for name in names}
    taken = next((name for name in texts if (folder / name).exists()), None)
    if taken is not None:
        raise exits.Failure(exits.USAGE, f"{folder / taken} exists; name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            _write(folder / name, text)
    except OSError as error:
        raise exits.Failure(exits.DEPENDENCY, f"{folder} cannot be written: {error.strerror or error}") from error
    print(f"{folder}: {', '.join(texts)}\n\nRun it, and ask it something:\n\n  gatewright up {folder}\n  {command}")
    return exits.OK


def _write(path: Path, text: str) -> None:
    """For this user alone: some hold keys."""
    path.touch(0o600)
    path.write_text(text)


def _source(template: str, name: str) -> str:
    found = TEMPLATES[template]
    if found.example:
        folder_of_example = shipped.example(found.example)
        assert folder_of_example is not None  # it ships with the product
        return (folder_of_example / name).read_text()
    root = resources.files("controlplane") / "templates"
    folder = template if name in found.files else "base"
    return (root / folder / name).read_text()


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text
