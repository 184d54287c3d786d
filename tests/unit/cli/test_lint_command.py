"""`gatewright lint` as a command: paths, standard input, forms and codes. What it finds is tested with the models."""

import io
import json
from pathlib import Path

import pytest

from controlplane.cli import __main__ as cli
from controlplane.cli import exits

GOOD = """\
apiVersion: v1
kind: Service
metadata:
  name: shop
spec:
  ports:
    - port: 80
"""
BAD = GOOD + "---\n" + GOOD.replace("shop", "cart").replace("port: 80", "port: many")


def test_a_good_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    assert cli.main(["lint", str(tmp_path)]) == exits.OK
    assert capsys.readouterr().out == "1 object in 1 file, 0 errors\n"


def test_a_bad_file_is_named_with_line_and_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text(BAD)
    assert cli.main(["lint", str(tmp_path)]) == exits.CONFIG
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith(f"{tmp_path}/a.yaml:15: Service default/cart: spec.ports[0].port: ")


def test_what_proxies_refuse_for_sure_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = """\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: p}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]
  traffic: {jwtAuthentication: {providers: [{issuer: i, jwks: {inline: INLINE}}]}}
"""
    file = tmp_path / "a.yaml"
    for inline, code in (("'keys'", exits.CONFIG), ("'{\"keys\": [{}]}'", exits.OK)):
        file.write_text(policy.replace("INLINE", inline))
        assert cli.main(["lint", str(file)]) == code
    policies = """{basicAuthentication: {users: ['a:{SHA}x'], realm: "a\\nb"}}"""
    file.write_text(f"binds: [{{port: 80, listeners: [{{routes: [{{policies: {policies}}}]}}]}}]")
    assert cli.main(["lint", str(file)]) == exits.CONFIG
    assert "the proxy refuses the policy" in capsys.readouterr().out.splitlines()[-2]


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text(BAD)
    assert cli.main(["lint", str(tmp_path / "a.yaml"), "-o", "json"]) == exits.CONFIG
    body = json.loads(capsys.readouterr().out)
    assert (body["files"], body["objects"], body["errors"]) == (1, 2, 1)
    assert body["problems"][0]["line"] == 15


def test_standard_input_joins_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.yaml").write_text(GOOD)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    assert cli.main(["lint", str(tmp_path / "a.yaml"), "-"]) == exits.CONFIG
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("<standard input>:15: ")
    assert lines[-1].startswith("3 objects in 2 files, 1 error")


def test_a_path_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text(BAD)
    assert cli.main(["lint", str(tmp_path / "no.yaml"), str(tmp_path)]) == exits.DEPENDENCY
    assert "no.yaml" in capsys.readouterr().out


SHOWN = {"policies": ["spec.traffic.timeouts"]}
"""Folder to where it shows a warning, on purpose and with a page that says so."""
EXAMPLES = [path for path in sorted((Path(__file__).parents[3] / "examples").iterdir()) if path.is_dir()]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: str(path.name))
def test_the_shipped_examples_are_clean(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["lint", str(example), "-o", "json"])
    problems = json.loads(capsys.readouterr().out)["problems"]
    # An example may show what is to come; that it waits is no fault of it.
    found = [each for each in problems if not each["unsupported"] and each["severity"] != "info"]
    assert [each["path"] for each in found] == SHOWN.get(example.name, []), found
