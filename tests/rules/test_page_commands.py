"""Every command of a page can be typed: a test types it, or a row says why none can.

Commands of the product are read by its own command line, and files that a command names exist. What else a page says to
type needs a row of `TYPED` (the test that runs it) or of `NOT_HERE` (the reason); a command without a row fails.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pytest

from controlplane.cli import forward, parser
from dataplane.bootstrap.parse import parse
from tests.rules import page_commands
from tests.rules.page_commands import PAGES, ROOT, Command

ALL = [command for page in PAGES for command in page_commands.commands(page)]

LOOPBACK = "tests/loopback/"


class Row(NamedTuple):
    """Commands of `page` (a pattern) that begin with `begins`, and the test that types them, or why none does."""

    page: str
    begins: str
    said: str


EXAMPLES = LOOPBACK + "test_example_commands.py::"

TYPED = (
    Row("README.md", "scripts/up", EXAMPLES + "test_curl_lines_of_a_running_example"),
    Row("README.md", "curl", EXAMPLES + "test_curl_lines_of_a_running_example"),
    Row("docs/first-route.md", "scripts/up", EXAMPLES + "test_the_first_route"),
    Row("docs/first-route.md", "curl", EXAMPLES + "test_the_first_route"),
    Row("docs/first-route.md", ".venv/bin/gatewright", EXAMPLES + "test_the_first_route"),
    Row("examples/quickstart/README.md", "curl", EXAMPLES + "test_curl_lines_of_a_running_example"),
    Row("examples/quickstart/README.md", "gatewright ", EXAMPLES + "test_curl_lines_of_a_running_example"),
    Row("examples/routing/README.md", "curl", EXAMPLES + "test_curl_lines_of_a_running_example"),
    Row("examples/policies/README.md", "curl", EXAMPLES + "test_curl_lines_of_a_running_example"),
    Row("examples/llm/README.md", "curl", EXAMPLES + "test_curl_lines_of_a_running_example"),
    Row("examples/llm-keys/README.md", "curl", EXAMPLES + "test_curl_lines_of_a_running_example"),
    Row("examples/https/README.md", "python", EXAMPLES + "test_curl_lines_of_a_running_example"),
    Row("examples/https/README.md", "curl", EXAMPLES + "test_curl_lines_of_a_running_example"),
    Row("docs/ratelimit.md", "grpcurl", LOOPBACK + "test_ratelimit_server.py::test_reflection_shows_the_service"),
    Row("examples/mcp/README.md", "python", LOOPBACK + "test_agent_examples.py::test_the_mcp_servers"),
    Row("examples/mcp/README.md", "curl", LOOPBACK + "test_agent_examples.py::test_the_mcp_servers"),
    Row("examples/a2a/README.md", "python", LOOPBACK + "test_agent_examples.py::test_the_agent"),
    Row("examples/a2a/README.md", "curl", LOOPBACK + "test_agent_examples.py::test_the_agent"),
    Row("examples/README.md", "python examples/mcp", LOOPBACK + "test_agent_examples.py::test_the_mcp_servers"),
    Row("examples/README.md", "python examples/a2a", LOOPBACK + "test_agent_examples.py::test_the_agent"),
    Row("examples/fleet/README.md", "python", LOOPBACK + "test_fleet_example.py::test_the_readme"),
    Row("examples/fleet/README.md", "gatewright", LOOPBACK + "test_fleet_example.py::test_the_readme"),
    Row("examples/fleet/README.md", "curl http://127.0.0.1:8080/", LOOPBACK + "test_fleet_example.py::test_the_readme"),
    Row(
        "examples/fleet/README.md", "curl http://127.0.0.1:18001/", LOOPBACK + "test_fleet_example.py::test_the_readme"
    ),
    Row(
        "examples/grpc/README.md",
        "grpcurl",
        LOOPBACK + "test_grpcurl.py::test_the_commands_of_the_example_find_what_they_call",
    ),
    Row(
        "examples/identity/README.md",
        "curl -i --interface",
        LOOPBACK + "test_identity_example.py::test_the_curl_lines_of_the_page_answer_what_it_says",
    ),
    Row(
        "examples/identity/README.md",
        "python examples/identity/daemon.py",
        LOOPBACK + "test_identity_example.py::test_the_curl_lines_of_the_page_answer_what_it_says",
    ),
    Row(
        "examples/identity-provider/README.md",
        "curl",
        LOOPBACK + "test_identity_providers.py::test_the_example_with_the_settings_of_a_provider",
    ),
    Row(
        "docs/identity-providers.md",
        "curl",
        LOOPBACK + "test_identity_providers.py::test_the_example_with_the_settings_of_a_provider",
    ),
    Row("docs/operations.md", "grpcurl", LOOPBACK + "test_grpcurl.py::test_the_commands_of_the_operations_page_work"),
    Row("docs/mcp/README.md", "npx", LOOPBACK + "test_mcp_page_commands.py::test_the_inspector_of_the_overview"),
    Row(
        "docs/mcp/*.md",
        "",
        LOOPBACK + "test_mcp_page_commands.py::test_what_a_page_says_comes_of_its_commands",
    ),
    Row(
        "docs/policies/basic_authentication.md",
        "python -c",
        EXAMPLES + "test_the_line_that_makes_a_password_makes_one_that_is_accepted",
    ),
    Row(
        "docs/protect-an-api.md",
        "cp",
        LOOPBACK + "test_protect_page.py::test_the_folder_of_the_page_answers_as_its_table_says",
    ),
    Row(
        "docs/protect-an-api.md",
        "sed",
        LOOPBACK + "test_protect_page.py::test_the_folder_of_the_page_answers_as_its_table_says",
    ),
    Row(
        "docs/protect-an-api.md",
        "curl",
        LOOPBACK + "test_protect_page.py::test_the_folder_of_the_page_answers_as_its_table_says",
    ),
    Row("docs/tls.md", "openssl ocsp", LOOPBACK + "test_ocsp.py::test_the_command_of_the_page_fetches_a_response"),
)
"""The first row that fits counts. The name of the page, or of its folder, is in the text of the test's file."""

NOT_HERE = (
    Row(
        "*",
        "kubectl",
        "needs a cluster; its folders of manifests are looked up here, and built by tests/rules/test_manifests.py",
    ),
    Row("docs/in-a-cluster.md", "LEADER=", "needs a cluster; the Lease is that of tests/cluster"),
    Row("docs/in-a-cluster.md", "docker build", "there is no daemon where tests run"),
    Row(
        "docs/in-a-cluster.md",
        "curl",
        "a page of a Pod; the same of a proxy here is asked by tests/loopback/test_up.py",
    ),
    Row("*", "helm template .", "the chart is the reader's"),
    Row("*", "helm ", "needs a cluster; the chart is rendered by tests/rules/test_manifests.py"),
    Row("*", "docker run --init", "names an option of Docker; there is no daemon where tests run"),
    Row("README.md", "pip install gatewright", "from a package index; tests/loopback/test_wheel.py installs the wheel"),
    Row("README.md", "pip install .", "builds the same wheel, which tests/loopback/test_wheel.py installs"),
    Row("*", "source .venv/bin/activate", "for shells of people; made by scripts/env"),
    Row("examples/identity/README.md", "curl -i http://100.100.1.2", "an address of the reader's private network"),
    Row("examples/identity/README.md", "sed", "writes the file that the test of the page writes with its own paths"),
    Row("examples/telemetry/README.md", "otelcol", "a program of its own, which is not among the tools of the tests"),
    Row("examples/telemetry/README.md", "prometheus", "its files are read by tests/rules/test_dashboards.py"),
    Row("examples/telemetry/README.md", "curl", "the answer is the reader's own server's"),
    Row("docs/operations.md", "openssl rand", "makes a random text"),
    Row("docs/architecture.md", "python -m controlplane", "the name of the program, in a table of processes"),
)
"""Commands that no test types, with the reason."""

OTHER_BLOCKS = (
    Row("docs/architecture.md", "worker", "layers"),
    Row("docs/architecture.md", "__main__", "layers"),
    Row("docs/attachment.md", "Gateway < ", "an order"),
    Row("docs/in-a-cluster.md", "resources: ", "a kustomization, built by tests/rules/test_manifests.py"),
    Row("docs/attachment.md", "… rule < ", "an order"),
    Row("docs/policies/backend_tls.md", "connect to ", "a message"),
    Row("examples/a2a/README.md", "HTTP/1.1 403", "an answer"),
    Row("examples/a2a/README.md", "… http.path", "a log line"),
    Row("examples/llm/README.md", "… gen_ai", "a log line"),
    Row("examples/llm-keys/README.md", "DOMAIN", "what a command prints"),
    Row("examples/identity/README.md", "GET /", "a request"),
    Row("examples/identity/README.md", "200 {", "an answer"),
    Row("examples/identity/README.md", "HTTP/1.1 403", "an answer"),
    Row("examples/identity/README.md", "… listener", "a log line"),
)
"""Indented blocks that are no commands, beside YAML: a new one needs a row, so that no command hides in one."""

THEIRS = {
    # as pages write it: what it stands for
    "FOLDER": "docs/policies.md and others: a folder of the reader",
    "FILE": "a file of the reader",
    "DIR": "a folder of the reader",
    "YOUR-FOLDER": "examples/quickstart",
    "examples/NAME": "examples/README.md: one of its folders",
    "api": "docs/protect-an-api.md: made by its first line",
    "api/certificate.yaml": "docs/protect-an-api.md: made by its first line",
    "tokens/jwt.yaml": "docs/protect-an-api.md: made by the line before",
    "mine": "docs/first-route.md: the folder that its block makes",
    "llm.yaml": "README.md: the block of the page",
    "./gateways": "a folder of the reader",
    "/tmp/https": "made by the line before",
    "/tmp/identity.yaml": "made by the line before",
    "tools.yaml": "docs/mcp: the block of the page",
    "config.yaml": "the reader's file",
    "guards.yaml": "docs/llm/guards.md: the block of the page",
    "prompt.txt": "a text of the reader",
    "gateway.yaml": "docs/llm/litellm.md: written by the command itself",
    "imported.yaml": "docs/mcp/file.md: written by the line before",
    "mcp.json": "the reader's file of a client",
    "request.yaml": "the reader's variables",
}
"""Files and folders of commands that are not in this repository."""


def find(rows: tuple[Row, ...], page: str, text: str) -> Row | None:
    return next((row for row in rows if fnmatchcase(page, row.page) and text.startswith(row.begins)), None)


def product(words: list[str]) -> None:
    """Reads a command of ours as its program would. Raises SystemExit for what it would not take."""
    program, *rest = words[: words.index("<")] if "<" in words else words
    if program == "gatewright-proxy" or rest[:1] == ["proxy"]:
        proxy = rest[1:] if program == "gatewright" else rest
        if forward.wanted(proxy):
            forward.configuration(proxy[proxy.index("--from") + 1], proxy[proxy.index("--to") + 1])
        elif proxy != ["-f"]:
            parse(proxy, {})
    elif not (len(rest) == 1 and rest[0] in {row.name for row in parser.COMMANDS}):  # else its name alone
        parser.build().parse_args(rest)


def script(words: list[str]) -> None:
    """Options of a script of ours are in its text."""
    text = (ROOT / words[0]).read_text()
    assert [word for word in words[1:] if word.startswith("--") and word not in text] == []


def module(words: list[str]) -> None:
    """`python -m MODULE --option`: the module is there, and speaks of the option. `python FILE`: it is there."""
    if words[1] == "-m":
        path = ROOT / words[2].replace(".", "/")
        text = (path / "__main__.py" if path.is_dir() else path.with_suffix(".py")).read_text()
        assert [word for word in words[3:] if word.startswith("--") and f'"{word}"' not in text] == []


READERS: dict[str, Callable[[list[str]], None]] = {
    "gatewright": product,
    "gatewright-proxy": product,
    "python": module,
    "scripts/": script,
}
"""What is looked at in a command besides its row, by how it begins."""

READ = ("gatewright", "scripts/", "python -m benchmarks.")
"""Begins of commands that need no row: the product's, which are read here, and scripts, which CI runs."""


def reader(program: str) -> Callable[[list[str]], None] | None:
    return READERS.get("scripts/" if program.startswith("scripts/") else program)


def absent(words: list[str]) -> list[str]:
    """Files that a command names and that are not there."""
    names = [
        word for word in words[1:] if re.fullmatch(r"(?:\.{1,2}/|/tmp/)?[\w-][\w./-]*\.(?:yaml|py|json|proto)", word)
    ]
    names += [word for word in words[1:] if re.match(r"(?:examples|manifests|tests|docs|benchmarks)/", word)]
    return [name for name in names if name not in THEIRS and not (ROOT / name).exists()]


def problems(command: Command) -> list[str]:
    """What is wrong with a command of a page."""
    found = []
    for words in command.calls():
        read = reader(words[0])
        try:
            if read is not None:
                read(words)
        except (SystemExit, AssertionError, FileNotFoundError, ValueError) as error:
            if str(error) != "0":  # of --help
                found.append(f"{command.page}: {command.text}: {error}")
        found += [f"{command.page}: {command.text}: there is no {name}" for name in absent(words)]
    if not (command.text.startswith(READ) or row_of(command)):
        found.append(f"{command.page}: no test types `{command.text}`; it needs a row in {Path(__file__).name}")
    return found


def row_of(command: Command) -> Row | None:
    return find(NOT_HERE, command.page, command.text) or find(TYPED, command.page, command.text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = [problem for command in page_commands.commands(page) for problem in problems(command)]
    assert found == [], capsys.readouterr().err


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_command_hides_in_another_block(page: Path) -> None:
    name = page.relative_to(ROOT).as_posix()
    for language, lines in page_commands.every_block(page.read_text()):
        first = lines[0] if lines else ""
        if language is None and not page_commands.is_program(first.split()[0]):
            assert re.match(r"[\w.-]+:(?: |$)", first) or find(OTHER_BLOCKS, name, first), (name, first)
        if language in ("", "text"):
            assert [
                line for line in lines if line.startswith("$ ") or page_commands.is_program(line.split(" ")[0])
            ] == []


def test_every_row_is_used() -> None:
    used = {row_of(command) for command in ALL}
    assert [row for row in (*TYPED, *NOT_HERE) if row not in used] == []
    firsts = [
        (page.relative_to(ROOT).as_posix(), lines[0])
        for page in PAGES
        for language, lines in page_commands.every_block(page.read_text())
        if language is None
    ]
    assert [row for row in OTHER_BLOCKS if not any(find((row,), *each) for each in firsts)] == []
    words = {word for command in ALL for each in command.calls() for word in each}
    assert [word for word in THEIRS if word not in words] == []


@pytest.mark.parametrize("row", TYPED, ids=lambda row: f"{row.page} {row.begins}")
def test_the_test_of_a_row_is_there_and_names_the_page(row: Row) -> None:
    file, _, function = row.said.partition("::")
    text = (ROOT / file).read_text()
    names = {
        each.name for each in ast.walk(ast.parse(text)) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert function in names
    page = Path(row.page)
    assert re.search(rf"\b(?:{re.escape(page.parent.name)}|{re.escape(page.stem)})\b", text), row
