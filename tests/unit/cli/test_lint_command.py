"""`gatewright lint` as a command: paths, standard input, forms and codes. What it finds is tested with the models."""

import io
import json
from pathlib import Path

import pytest

from controlplane.cli import __main__ as cli
from controlplane.cli import command_options, exits
from controlplane.cli.offline import lint

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


SHOWN = {
    "policies": ["spec.traffic.timeouts"],
    "kubernetes": ["spec.gatewayClassName"],
    "mesh": ["spec.gatewayClassName"],
}
"""Folder to where it shows a warning, on purpose and with a page that says so: a class is made by whoever installs."""
MADE = {"https"}
"""Folders that a script completes; test_https_example.py lints what it makes."""
EXAMPLES = [
    path
    for path in sorted((Path(__file__).parents[3] / "examples").iterdir())
    if path.is_dir() and path.name not in MADE
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: str(path.name))
def test_the_shipped_examples_are_clean(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["lint", str(example), "-o", "json"])
    problems = json.loads(capsys.readouterr().out)["problems"]
    # An example may show what is to come; that it waits is no fault of it.
    found = [each for each in problems if not each["unsupported"] and each["severity"] != "info"]
    assert [each["path"] for each in found] == SHOWN.get(example.name, []), found


WARNED = (
    GOOD
    + "---\n"
    + """\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: "p"}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]
  traffic: {timeouts: {}}
"""
)


def test_strict_makes_warnings_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text(WARNED)
    file = str(tmp_path / "a.yaml")
    assert cli.main(["lint", file]) == exits.OK
    assert cli.main(["lint", file, "--strict"]) == exits.CONFIG
    (tmp_path / "a.yaml").write_text(GOOD)
    assert cli.main(["lint", file, "--strict"]) == exits.OK


def test_kinds_that_come_from_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    route = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r}
spec: {parentRefs: [{name: web}], rules: [{backendRefs: [{name: shop, port: 80}]}]}
"""
    (tmp_path / "a.yaml").write_text(route)
    assert cli.main(["lint", str(tmp_path)]) == exits.CONFIG
    assert capsys.readouterr().out.count("target not found") == 2
    assert cli.main(["lint", str(tmp_path), "--elsewhere", "Gateway"]) == exits.CONFIG
    assert cli.main(["lint", str(tmp_path), "--elsewhere", "Gateway, Service"]) == exits.OK
    assert cli.main(["lint", str(tmp_path), "--elsewhere", "Gateway", "--elsewhere", "Service"]) == exits.OK
    assert cli.main(["lint", str(tmp_path), "--elsewhere", "Servise"]) == exits.USAGE
    assert '--elsewhere: "Servise" is no kind; did you mean "Service"?' in capsys.readouterr().err


def test_a_gateway_whose_class_comes_from_elsewhere(tmp_path: Path) -> None:
    gateway = """\
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web}
spec: {gatewayClassName: gatewright, listeners: [{name: a, port: 80, protocol: HTTP}]}
"""
    (tmp_path / "a.yaml").write_text(gateway)
    assert cli.main(["lint", str(tmp_path)]) == exits.CONFIG
    assert cli.main(["lint", str(tmp_path), "--elsewhere", "GatewayClass"]) == exits.OK


def test_annotations_of_a_pull_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a,b:c.yaml"
    file.write_text(BAD.replace("port: many", "port: '100%\\n'"))
    assert cli.main(["lint", str(file), "-o", "github"]) == exits.CONFIG
    (line,) = capsys.readouterr().out.splitlines()
    head, _, text = line.removeprefix("::").partition("::")
    assert head == f"error file={tmp_path}/a%2Cb%3Ac.yaml,line=15,col=7,title=invalid"
    assert text.startswith("Service default/cart: spec.ports[0].port: must be a")
    assert "100%25" in text and "\n" not in text
    file.write_text(GOOD)
    assert cli.main(["lint", str(file), "-o", "github"]) == exits.OK
    assert capsys.readouterr().out == ""


def test_sarif(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SARIF 2.1.0: rules are what results refer to, places count from 1, a file without a line has no region."""
    (tmp_path / "a.yaml").write_text(BAD + "---\n" + WARNED)
    assert cli.main(["lint", str(tmp_path / "a.yaml"), str(tmp_path / "no.yaml"), "-o", "sarif"]) == exits.DEPENDENCY
    log = json.loads(capsys.readouterr().out)
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["unreadable", "invalid", "defined-twice", "hardly-meant"]
    assert all(rule["helpUri"] == f"docs/lint.md#{rule['id']}" for rule in run["tool"]["driver"]["rules"])
    found = [(each["ruleId"], each["level"], each["locations"][0]["physicalLocation"]) for each in run["results"]]
    places = {
        code: (level, place["artifactLocation"]["uri"].rpartition("/")[2], place.get("region"))
        for code, level, place in found
    }
    assert places["unreadable"] == ("error", "no.yaml", None)
    assert places["invalid"] == ("error", "a.yaml", {"startLine": 15, "startColumn": 7})
    assert places["hardly-meant"][0] == "warning"


def test_the_forms_are_those_of_the_command_line() -> None:
    assert tuple(lint.FORMS) == command_options.LINT_FORMS
