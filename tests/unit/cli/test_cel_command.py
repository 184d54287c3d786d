"""`gatewright cel` as a command: value, mistakes with their place, what is read, the plan, files, exit codes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from controlplane.cli import __main__ as cli
from controlplane.cli import exits

SAMPLE = str(Path(__file__).parents[3] / "examples/request.yaml")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Without the plan, unless it is asked for."""
    plan = () if "--plan" in words else ("--no-plan",)
    code = cli.main(["cel", *plan, *words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_a_value_its_type_and_what_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    text = 'jwt.sub + "@" + request.headers["X-Team"]'
    assert run(capsys, text, "--with", SAMPLE) == (
        exits.OK,
        '"alice@blue"\ntype: string\nreads: jwt, request.headers:x-team\n',
        "",
    )


def test_the_sample_of_the_pages_ships_with_the_product(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "jwt.sub", "--with", "examples/request.yaml")[:2] == (
        exits.OK,
        '"alice"\ntype: string\nreads: jwt\n',
    )
    assert run(capsys, "jwt.sub", "--with", "examples/other.yaml")[0] == exits.DEPENDENCY


def test_without_variables_it_is_checked_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, 'request.path == "/"') == (exits.OK, "type: bool\nreads: request.path\n", "")
    assert run(capsys, "1 + 1") == (exits.OK, "type: int\nreads: nothing\n", "")
    assert run(capsys, "variables()")[1] == "type: map(string, dyn)\nreads: everything\n"


def test_a_mistake_is_shown_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "request.path +\n  request.mehtod")
    assert (code, out) == (
        exits.CONFIG,
        'error: line 2, column 11: request has no field "mehtod"; did you mean "method"?\n'
        "    request.mehtod\n"
        "            ^^^^^^\n",
    )


def test_an_expression_without_value_is_shown_where_it_fails(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, 'true && request.headers["x-nope"] == "a"', "--with", SAMPLE)
    assert code == exits.CONFIG
    assert out.splitlines()[:3] == [
        "error: line 1, column 24: no such key: x-nope",
        '  true && request.headers["x-nope"] == "a"',
        "                         ^",
    ]


def test_an_expression_that_fails_at_its_first_letter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rule.cel").write_text("-int('-9223372036854775808')")
    _, out, _ = run(capsys, "-f", str(tmp_path / "rule.cel"), "--with", SAMPLE)
    assert out.splitlines()[0].startswith("error: line 1, column 1: ")


def test_a_long_line_is_shown_around_the_place(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, " + ".join(["'abcdef'"] * 200) + " + nope" + " + 'x'" * 100)
    message, line, caret = out.splitlines()
    assert message.startswith("error: line 1, column 2201: unknown variable")
    assert len(line) < 130
    assert line[caret.index("^") : caret.rindex("^") + 1] == "nope"


def test_the_moment_decides_what_may_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "response.code", "--moment", "response")[0] == exits.OK
    code, out, _ = run(capsys, "response.code", "--moment", "request")
    assert code == exits.CONFIG
    assert '"response" does not exist yet: this is evaluated with the request' in out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "json(request.body).item", "--with", SAMPLE, "--json", "--plan")
    content = json.loads(out)
    plan = content.pop("plan")
    assert code == exits.OK
    assert content == {
        "expression": "json(request.body).item",
        "type": "string",
        "reads": ["request.body"],
        "errors": [],
        "value": "book",
    }
    assert "c.request_json" in plan
    code, out, _ = run(capsys, "nope", "-o", "json")
    assert (code, json.loads(out)["errors"][0]["column"]) == (exits.CONFIG, 1)


def test_the_plan_is_shown_unless_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["cel", "1 + 1"]) == exits.OK
    assert capsys.readouterr().out == "type: int\nreads: nothing\nplan:\n  def plan(c):\n      return 2\n"


def test_the_plan_names_its_constants(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, 'request.method == "GET"', "--plan")
    assert "plan:\n  # k0 = 'GET'\n  def plan(c):\n      return c.request_method == k0\n" in out


@pytest.mark.parametrize("words", [["-"], ["-f", "-"], ["--file", "-"]])
def test_standard_input(words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"1 +\n 1\n")))
    assert run(capsys, *words)[1] == "type: int\nreads: nothing\n"


def test_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rule.cel").write_text("request.method\n")
    assert run(capsys, "-f", str(tmp_path / "rule.cel"), "--with", SAMPLE)[1].startswith('"POST"\n')


@pytest.mark.parametrize("words", [[], ["a", "-f", "b"]])
def test_exactly_one_expression(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, *words)
    assert code == exits.USAGE
    assert err.startswith("gatewright: give an expression, or a file")


@pytest.mark.parametrize("words", [["-f", "{}/no"], ["true", "--with", "{}/no"]])
def test_a_file_that_is_not_there(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, *(word.format(tmp_path) for word in words))
    assert code == exits.DEPENDENCY
    assert err == f"gatewright: {tmp_path}/no cannot be read: No such file or directory\n"


def test_variables_with_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "v.yaml"
    file.write_text("request:\n  methd: GET\n  headers:\n    a: 1\nllm:\n  prompt: [{}, 1]\n")
    code, _, err = run(capsys, "true", "--with", str(file))
    assert code == exits.CONFIG
    assert err.splitlines() == [
        "gatewright: the variables cannot be used:",
        f'  {file}:2: request.methd: unknown field; did you mean "method"?',
        f"  {file}:4: request.headers.a: must be text: put it in quotes",
        f"  {file}:6: llm.prompt[1]: must be an object",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "2: not YAML: "),
        ("request:\n\tmethod: GET\n", "2: not YAML: a tab indents this line; indent with spaces"),
        ("- 1\n", "1: must be an object with request"),
        ("# of a test\n\n- 1\n", "3: must be an object with request"),
        ('{"request":\n "\\ud83d\\ude00"}', "1: request: "),  # JSON that YAML cannot read has no lines
    ],
)
def test_variables_that_are_no_object(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "v.yaml"
    file.write_text(text)
    code, _, err = run(capsys, "true", "--with", str(file))
    assert code == exits.CONFIG
    assert f"{file}:{message}" in err


def test_an_empty_file_has_no_variables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "v.yaml"
    file.write_text("# nothing\n")
    assert run(capsys, "has(jwt.sub) || true", "--with", str(file))[1].startswith("true\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("b'abc'", '"YWJj"\ntype: bytes'),
        ("request.startTime", '"2026-01-31T12:00:00Z"\ntype: google.protobuf.Timestamp'),
        ("duration('1m')", '"60s"\ntype: google.protobuf.Duration'),
        ("[1u, 2.5, null]", "[\n  1,\n  2.5,\n  null\n]\ntype: list"),
        ("jwt.rawToken", '"<redacted>"\ntype: string'),
        ("type(1)", '"int"\ntype: type'),
        ("ip('::1')", '"::1"\ntype: net.IP'),
        ("cidr('10.0.0.0/8')", '"10.0.0.0/8"\ntype: net.CIDR'),
        ("1.0 / 0.0", '"+Inf"\ntype: double'),
        ("[-1.0 / 0.0, 0.0 / 0.0]", '[\n  "-Inf",\n  "NaN"\n]\ntype: list'),
        ("{'a': [optional.of(cidr('::/0'))]}", '{\n  "a": [\n    "::/0"\n  ]\n}\ntype: map'),
        ("request.headers['host']", '"shop.example.com"\ntype: string'),
        ("optional.none()", "null\ntype: optional_type"),
        ("{true: 1}", '{\n  "true": 1\n}\ntype: map'),
        ("'ü'", '"ü"\ntype: string'),
    ],
)
def test_values_as_json(text: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, text, "--with", SAMPLE)[1].startswith(f"{shown}\n")


@pytest.mark.parametrize(
    ("opened", "closed", "shown"), [("[", "]", "["), ("{'a': ", "}", '{"a": '), ("optional.of(", ")", "")]
)
def test_a_hundred_levels_are_shown(opened: str, closed: str, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What JSON has no number for is text at each of them; one level more is refused."""
    for levels, code in ((100, exits.OK), (101, exits.CONFIG)):
        text = f"{opened * levels}1.0 / 0.0{closed * levels}"
        assert run(capsys, text, "--with", SAMPLE)[0] == code, levels
    _, out, _ = run(capsys, f"{opened * 100}1.0 / 0.0{closed * 100}", "--with", SAMPLE, "--json")
    value = json.dumps(json.loads(out)["value"])
    assert value == f'{shown * 100}"+Inf"{(closed if shown else "") * 100}'


@pytest.mark.parametrize("body", ["[" * 600 + "]" * 600, '{"a":' * 600 + "1" + "}" * 600])
def test_a_value_of_many_levels_is_a_mistake_of_the_expression(
    body: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "v.yaml"
    file.write_text(json.dumps({"request": {"body": body}}))
    code, out, _ = run(capsys, "json(request.body)", "--with", str(file))
    assert (code, "nested" in out.splitlines()[0]) == (exits.CONFIG, True), out[:200]


def test_limits_end_an_evaluation(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = "range(100).map(a, range(100).map(b, range(100).map(c, a + b + c)))"
    code, out, _ = run(
        capsys, f"lists.{numbers.replace('range', 'lists.range').removeprefix('lists.')}", "--with", SAMPLE
    )
    assert code == exits.CONFIG
    assert out.startswith("error: line 1, column ")


def test_the_place_of_a_mistake_at_the_end_in_tabs_and_in_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The end of the text is a place, also behind a last newline and of an empty text; tabs stay under tabs."""
    assert run(capsys, "1 +")[1].splitlines()[1:] == ["  1 +", "     ^"]
    assert run(capsys, "1 +\n")[1].splitlines()[1:] == ["  ", "  ^"]
    assert run(capsys, "'\u2028' +\nnope")[1].split("\n")[1:3] == ["  nope", "  ^^^^"]
    assert run(capsys, "\n\t\tnope")[1].splitlines()[1:] == ["  \t\tnope", "  \t\t^^^^"]
    empty = run(capsys, "")[1].splitlines()
    assert empty[0].startswith("error: line 1, column 1: ") and empty[1:] == ["  ", "  ^"]


def test_a_long_line_begins_sixty_characters_before_the_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    for before, indent in ((60, 60), (61, 60), (59, 59)):
        _, line, caret = run(capsys, f"{' ' * before}nope")[1].splitlines()
        assert (len(caret) - len("nope") - 2, line.endswith("nope")) == (indent, True), before
    _, line, caret = run(capsys, f"{' ' * 100}{'n' * 300}")[1].splitlines()
    assert (line, caret) == (f"  {' ' * 60}{'n' * 60}", f"  {' ' * 60}{'^' * 60}")


def test_a_mistake_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "true &&\n request.mehtod == ''", "--json")
    assert code == exits.CONFIG
    assert out.startswith('{\n  "expression": "true &&')
    assert json.loads(out) == {
        "expression": "true &&\n request.mehtod == ''",
        "type": "",
        "reads": [],
        "errors": [
            {"line": 2, "column": 10, "length": 6, "message": 'request has no field "mehtod"; did you mean "method"?'}
        ],
    }


def test_a_file_that_is_not_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rule.cel").write_bytes(b"\xff")
    code, _, err = run(capsys, "-f", str(tmp_path / "rule.cel"))
    assert (code, err) == (exits.CONFIG, f"gatewright: {tmp_path}/rule.cel is not UTF-8 text\n")
