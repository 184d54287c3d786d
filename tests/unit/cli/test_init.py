"""`init`, `crds`, and a proxy without a file: what they write is valid and does what it says."""

from __future__ import annotations

import base64
import json
import os
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from controlplane.cli import __main__ as cli
from controlplane.cli import command_options, exits, forward
from controlplane.cli.offline import crds, init
from controlplane.kube.writing import owned
from gatewright.api.decode import documents
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.names import OUR_KINDS


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "gatewright"


@pytest.mark.parametrize("template", command_options.TEMPLATES)
def test_what_is_written_is_valid_and_says_how_to_try_it(
    template: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "made"
    assert cli.main(["init", template, str(folder)]) == exits.OK
    said = capsys.readouterr().out
    assert f"gatewright up {folder}\n" in said
    assert "curl" in said
    assert cli.main(["lint", "--strict", str(folder)]) == exits.OK
    kinds = [each.key.kind for file in folder.iterdir() for each in documents.decode(file.read_text(), "") if each.key]
    assert {"GatewayClass", "Gateway", "HTTPRoute", "Service", "EndpointSlice"} <= set(kinds)
    assert "{{" not in "".join(file.read_text() for file in folder.iterdir())


def test_templates_are_those_of_the_command_line() -> None:
    assert init.TEMPLATES.keys() == command_options.TEMPLATES.keys()


@pytest.mark.parametrize(
    ("template", "command"),
    [
        ("split", "for i in $(seq 10); do curl -s http://127.0.0.1:8080/ | grep server; done"),
        (
            "ratelimit",
            "for i in $(seq 11); do curl -s -o /dev/null -w '%{http_code}\\n' http://127.0.0.1:8080/; done",
        ),
        ("jwt", "curl -i http://127.0.0.1:8080/ -H 'Authorization: Bearer "),
        ("https", "curl -i https://localhost:8443/ --cacert <(sed -n 's/.*tls.crt: //p' "),
        ("llm", "curl -i http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' -d '"),
    ],
)
def test_the_command_to_try_it(template: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "deep" / "below"
    assert cli.main(["init", template, str(folder)]) == exits.OK
    first, *_, up, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{folder}: gateway.yaml, ") and up == f"  gatewright up {folder}"
    assert last.startswith(f"  {command}")
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}, "some hold keys"


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert cli.main(["init", "split", str(tmp_path / "file" / "below")]) == exits.DEPENDENCY
    assert capsys.readouterr() == ("", f"gatewright: {tmp_path}/file/below cannot be written: Not a directory\n")


def test_the_folder_is_named_after_the_template_unless_it_has_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "split").mkdir()
    assert cli.main(["init", "split"]) == exits.OK
    assert (tmp_path / "split" / "shop-next.yaml").exists(), "an empty folder may be there"


def unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_the_token_of_a_template_is_good_for_a_year_by_its_key() -> None:
    values, command = init.TEMPLATES["jwt"].fill(Path("f"))
    (jwk,) = json.loads(values[init.JWKS])["keys"]
    head, claims, signature = command.rpartition(" ")[2].rstrip("'").split(".")
    assert json.loads(unpadded(head)) == {"alg": "ES256", "kid": "start"}
    said = json.loads(unpadded(claims))
    assert (said["iss"], said["aud"], said["sub"]) == ("https://issuer.example", "shop", "alice")
    assert said["exp"] - said["iat"] == 365 * 86_400 and abs(said["iat"] - time.time()) < 600
    x, y = map(unpadded, (jwk["x"], jwk["y"]))
    assert (len(x), len(y), len(unpadded(signature))) == (32, 32, 64)  # RFC 7518 6.2.1.2, 3.4
    assert (jwk["kty"], jwk["crv"], jwk["alg"], jwk["kid"]) == ("EC", "P-256", "ES256", "start")
    numbers = ec.EllipticCurvePublicNumbers(int.from_bytes(x), int.from_bytes(y), ec.SECP256R1())
    both = unpadded(signature)
    numbers.public_key().verify(
        encode_dss_signature(int.from_bytes(both[:32]), int.from_bytes(both[32:])),
        f"{head}.{claims}".encode(),
        ec.ECDSA(hashes.SHA256()),
    )


def test_the_certificate_of_a_template_is_for_this_machine_and_a_year() -> None:
    values, _ = init.TEMPLATES["https"].fill(Path("f"))
    made = x509.load_pem_x509_certificate(base64.b64decode(values[init.CERTIFICATE]))
    key: Any = serialization.load_pem_private_key(base64.b64decode(values[init.KEY]), None)
    assert made.public_key() == key.public_key()
    made.verify_directly_issued_by(made)
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.value.get_values_for_type(x509.DNSName) == ["localhost"] and not names.critical
    assert [str(each) for each in names.value.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    assert made.not_valid_after_utc - made.not_valid_before_utc == timedelta(days=365, hours=1)
    assert timedelta(minutes=50) < datetime.now(UTC) - made.not_valid_before_utc < timedelta(minutes=70), (
        "of slow clocks"
    )


def test_what_is_there_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "limit.yaml").write_text("mine")
    assert cli.main(["init", "ratelimit", str(tmp_path)]) == exits.USAGE
    assert f"{tmp_path}/limit.yaml exists" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["limit.yaml"]
    assert (tmp_path / "limit.yaml").read_text() == "mine"


def test_each_folder_has_keys_of_its_own() -> None:
    for make in (init.TEMPLATES[name].fill for name in ("jwt", "https")):
        (one, _), (two, _) = make(Path("f")), make(Path("f"))
        assert one.values() != two.values()


def test_definitions_for_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["crds"]) == exits.OK
    found = [*yaml.load_all(capsys.readouterr().out, yaml.CSafeLoader)]
    assert {each["spec"]["names"]["kind"] for each in found} == set(OUR_KINDS)
    assert cli.main(["crds", "base", "crds"]) == exits.OK
    kinds = [each["kind"] for each in yaml.load_all(capsys.readouterr().out, yaml.CSafeLoader)]
    assert kinds[0] == "Namespace"
    assert kinds.count("CustomResourceDefinition") == len(OUR_KINDS)


def test_what_a_namespace_needs_names_none(capsys: pytest.CaptureFixture[str]) -> None:
    """So that `kubectl apply -n` says which."""
    assert cli.main(["crds", "namespace"]) == exits.OK
    found = [*yaml.load_all(capsys.readouterr().out, yaml.CSafeLoader)]
    assert [each["kind"] for each in found] == ["NetworkPolicy", "RoleBinding"]
    assert not any("namespace" in each["metadata"] for each in found)
    assert cli.main(["crds", "everywhere"]) == exits.OK
    assert yaml.safe_load(capsys.readouterr().out)["kind"] == "ClusterRoleBinding"


OWNER = ("list", "watch", "get", "create", "patch", "delete")
"""What is done with objects of Gateways."""


def rights(role: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_who_may_not_make_proxies_writes_statuses_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """So that the right to make them can be bound in some namespaces only."""
    cli.main(["crds", "base"])
    documents_ = [*yaml.load_all(capsys.readouterr().out, yaml.CSafeLoader)]
    found = {each["metadata"]["name"]: each for each in documents_ if each["kind"] == "ClusterRole"}
    for _, resource, verb in rights(found["gatewright-controller"]):
        allowed = ("patch",) if resource.endswith("/status") else ("list", "watch")
        if resource == "gatewayclasses":
            allowed = ("list", "watch", "patch")  # the finalizer of those in use
        assert verb in (("create",) if resource == "tokenreviews" else allowed)
    assert not {"list", "watch"} & {verb for _, _, verb in rights(found["gatewright-provisioner"])}


def test_the_rights_are_about_every_kind_that_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["crds", "base"])
    documents_ = [*yaml.load_all(capsys.readouterr().out, yaml.CSafeLoader)]
    roles = {each["metadata"]["name"]: each for each in documents_ if each["kind"] == "ClusterRole"}
    granted = rights(roles.pop("gatewright-controller")) | rights(roles.pop("gatewright-provisioner"))
    assert not roles
    provisioned = {
        (info.group, info.plural, verb)
        for kind, info in owned.KINDS.items()
        for verb in (("get", "create", "delete") if kind == "Secret" else OWNER)
    }
    read = {(info.group, info.plural, verb) for info in KINDS.values() for verb in ("list", "watch")}
    assert {each for each in granted if not each[1].endswith("/status")} == {
        *read,
        *provisioned,
        ("gateway.networking.k8s.io", "gateways/finalizers", "update"),
        ("gateway.networking.k8s.io", "gatewayclasses", "patch"),  # the finalizer of those in use
        ("authentication.k8s.io", "tokenreviews", "create"),
    }
    assert {verb for _, resource, verb in granted if resource.endswith("/status")} == {"patch"}


def test_definitions_of_an_installed_product(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are below the package there, in a source tree beside it; the namespace comes first."""
    package = tmp_path / "installed" / "controlplane"
    package.mkdir(parents=True)
    monkeypatch.setattr(crds, "settings", SimpleNamespace(__file__=str(package / "settings.py")))
    assert cli.main(["crds"]) == exits.DEPENDENCY
    assert capsys.readouterr() == ("", "gatewright: manifests/crds is not part of this installation\n")
    for root in (package.parent, package):
        (root / "manifests" / "base").mkdir(parents=True)
        (root / "manifests" / "base" / "b.yaml").write_text(f"\nof: {root.name}\n\n")
        assert cli.main(["crds", "base"]) == exits.OK
        assert capsys.readouterr().out == f"of: {root.name}\n"
    (package / "manifests" / "base" / "a.yaml").write_text("a: 1\n")
    (package / "manifests" / "base" / "namespace.yaml").write_text("n: 1\n")
    (package / "manifests" / "base" / "README.md").write_text("no definitions")
    assert cli.main(["crds", "base"]) == exits.OK
    assert capsys.readouterr().out == "n: 1\n---\na: 1\n---\nof: controlplane\n"


def test_an_unknown_part_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["crds", "operators"])
    assert "there are crds, base, namespace, everywhere and ratelimit" in capsys.readouterr().err


def listener(made: dict[str, Any]) -> dict[str, Any]:
    (bind,) = made["binds"]
    return dict(bind)


@pytest.mark.parametrize(
    ("source", "target", "port", "addresses", "host"),
    [
        (":8080", "127.0.0.1:3000", 8080, None, "127.0.0.1:3000"),
        ("127.0.0.1:80", ":3000", 80, ["127.0.0.1"], "127.0.0.1:3000"),
        ("[::1]:80", "shop.example:443", 80, ["::1"], "shop.example:443"),
        (":1", "unix:/run/shop.sock", 1, None, "unix:/run/shop.sock"),
        (":65535", ":1", 65535, None, "127.0.0.1:1"),
    ],
)
def test_from_here_to_there(source: str, target: str, port: int, addresses: list[str] | None, host: str) -> None:
    made = listener(forward.configuration(source, target))
    assert (made["port"], made.get("addresses")) == (port, addresses)
    assert made["listeners"][0]["routes"][0]["backends"] == [{"host": host}]


def test_the_file_is_this_users_and_passes_lint(private: Path, tmp_path: Path) -> None:
    made = forward.with_file(["--from", ":8080", "--workers", "1", "--to=127.0.0.1:3000"], os.environ)
    assert made == ["--workers", "1", "-f", str(private / "forward-8080.json")]
    file = private / "forward-8080.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().startswith('{\n  "binds": [\n'), "its user may go on from it"
    assert json.loads(file.read_text()) == forward.configuration(":8080", "127.0.0.1:3000")
    assert [each.name for each in private.iterdir()] == [file.name]
    assert cli.main(["lint", str(file)]) == exits.OK


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["--from", ":1"], "belong together"),
        (["--to", ":1"], "belong together"),
        (["--from", ":1", "--to", ":2", "-f", "x"], "neither -f nor --xds"),
        (["--from", ":1", "--to", ":2", "--xds=unix:/x"], "neither -f nor --xds"),
        (["--from", "8080", "--to", ":2"], "--from '8080' is no address"),
        (["--from", ":1", "--to", "shop"], "--to 'shop' is no address"),
        (["--from", ":70000", "--to", ":2"], "--from ':70000' is no address"),
        (["--from", ":65536", "--to", ":2"], "--from ':65536' is no address"),
        (["--from", ":1", "--to", ":0"], "--to ':0' is no address"),
        (["--from", "a]:1", "--to", ":2"], "is no address"),
    ],
)
def test_what_makes_no_sense(line: list[str], message: str, private: Path) -> None:
    with pytest.raises(exits.Failure, match=message) as failure:
        forward.with_file(line, os.environ)
    assert failure.value.code == exits.USAGE


def test_a_folder_that_is_not_this_users_alone_gets_no_file(private: Path) -> None:
    private.mkdir()
    private.chmod(0o777)
    with pytest.raises(exits.Failure, match="no file can be written for --from and --to: ") as failure:
        forward.with_file(["--from", ":1", "--to", ":2"], os.environ)
    assert (failure.value.code, [*private.iterdir()]) == (exits.DEPENDENCY, [])


def test_options_of_the_proxy_beside_ours_are_the_proxys(private: Path) -> None:
    made = forward.with_file(["--from", ":1", "--to", ":2", "--help", "--fro", "x", "--t", "y"], os.environ)
    assert made == ["--help", "--fro", "x", "--t", "y", "-f", str(private / "forward-1.json")]


def test_other_command_lines_of_the_proxy_are_handed_on() -> None:
    assert not forward.wanted(["-f", "x", "--workers", "1"])
    assert forward.wanted(["--from=:1"])
