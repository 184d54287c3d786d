"""What the pages and examples say to write is accepted by `gatewright lint`, and by a proxy that starts with it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from controlplane.cli.__main__ import main
from tests.fakes.both_planes import BothPlanes
from tests.fakes.memory_proxy import Http1Endpoints

ROOT = Path(__file__).resolve().parents[2]
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADS = {"docs/reference/README.md": "how files begin for an editor"}
"""Pages whose blocks are no whole examples, and why."""
PAGES = sorted(
    page
    for where in ("docs/**/*.md", "examples/*/README.md")
    for page in ROOT.glob(where)
    if "```yaml" in page.read_text() and str(page.relative_to(ROOT)) not in HEADS
)
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/gateway.yaml"))
FILES = sorted([*(ROOT / "examples/standalone").glob("*.yaml"), *(ROOT / "examples").glob("*/config.yaml")])

ROUTE = """\
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: example}
spec:
  parentRefs: [{name: web}]
  rules:
    - name: example
"""

BESIDE = dict.fromkeys(("kubernetes", "mesh"), (ROOT / "manifests/base/gatewayclass.yaml",))
"""What is in the cluster of an example already."""


def blocks(page: Path) -> list[str]:
    return YAML.findall(page.read_text())


class Run(NamedTuple):
    """What a command ended with."""

    returncode: int
    stdout: str
    stderr: str


def lint(*paths: Path) -> Run:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(["lint", *map(str, paths)])
    return Run(code, out.getvalue(), err.getvalue())


@pytest.mark.parametrize("page", ["README.md", "docs/first-route.md"])
def test_first_steps(page: str, tmp_path: Path) -> None:
    (block,) = blocks(ROOT / page)
    (tmp_path / "shop.yaml").write_text(block)
    run = lint(tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("example", [*EXAMPLES, *FILES], ids=lambda path: str(path.relative_to(ROOT / "examples")))
def test_example(example: Path) -> None:
    beside = BESIDE.get(example.name, ())
    run = lint(example, *beside)
    assert run.returncode == 0, run.stdout + run.stderr
    files = [*sorted(example.glob("*.yaml")), *beside] if example.is_dir() else [example]
    start("\n---\n".join(path.read_text() for path in files))


def test_a_class_that_others_share_is_in_no_example_for_clusters() -> None:
    """Who deletes the example deletes it as well."""
    assert "kind: GatewayClass" not in "".join(path.read_text() for path in (ROOT / "examples/kubernetes").iterdir())


def test_every_example_is_listed() -> None:
    page = (ROOT / "examples/README.md").read_text()
    assert [path.name for path in (*EXAMPLES, *FILES) if f"{path.relative_to(ROOT / 'examples')})" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page: Path, tmp_path: Path) -> None:
    """Each block is an object, a standalone file, or a part of one of them as its first field tells."""
    for number, block in enumerate(blocks(page)):
        if first_field(block) not in OTHERS:
            file, text = tmp_path / f"{number}.yaml", whole(block, number)
            file.write_text(text)
            run = lint(file)
            assert run.returncode == 0, run.stdout + run.stderr
            start(text)


POLICY = """\
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: example}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: web}]
"""

FILE = "binds:\n- port: 8080\n  listeners:\n  - routes:\n    - name: example\n"

AROUND = {
    # first field of a block: what it is a part of, and how far below
    "apiVersion": ("", 0),
    "binds": ("", 0),
    "frontendPolicies": ("", 0),
    "policies": (FILE, 6),
    "traffic": (POLICY, 2),
    "frontend": (POLICY, 2),
    "filters": (ROUTE, 6),
    "matches": (ROUTE, 6),
    "timeouts": (ROUTE, 6),
    "retry": (ROUTE, 6),
    "backendRefs": (ROUTE, 6),
    "backends": (FILE, 6),
    "config": (FILE, 0),
    "backend": (POLICY, 2),
    "ai": (f"{POLICY}  backend:\n", 4),
    "promptGuard": (f"{POLICY}  backend:\n    ai:\n", 6),
}
OTHERS = {
    "domain": "limits that `gatewright ratelimit` reads: its own tests have it",
    "backendRef": "a reference to that server",
    "cost": "an expression of a global limit",
    "spec": "a part of a Gateway, of which there are several on the page",
}
"""First fields of blocks that nothing here is around."""


def whole(block: str, number: int) -> str:
    """The text that a block of a page is a part of; a setting of `traffic` alone is one of a GatewayPolicy."""
    field = first_field(block)
    is_file = field == "config" and re.search("^binds:", block, re.MULTILINE)
    text, depth = ("", 0) if is_file else AROUND.get(field, (POLICY + "  traffic:\n", 4))
    part = "".join(f"{' ' * depth}{line}\n" for line in block.splitlines())
    return text.replace("name: example", f"name: example-{number}") + part


def first_field(block: str) -> str:
    """Of a block, behind its comments."""
    line = next(line for line in block.splitlines() if line and not line.startswith("#"))
    return line.partition(":")[0]


def start(text: str) -> None:
    """A proxy in memory begins with it, for each Gateway; without one, for the Gateway that other blocks have."""
    objects = [each for each in yaml.safe_load_all(text) if each]
    if "kind" not in objects[0]:
        with contextlib.suppress(MissingFiles):
            FilesAreElsewhere(text)
        return
    names = [each["metadata"] for each in objects if each["kind"] == "Gateway"]
    if not names:
        names, text = [{"name": "web"}], text + WEB
    if "kind: GatewayClass" not in text:
        text += CLASS
    for name in names:
        proxy = BothPlanes(text, f"{name.get('namespace', 'default')}/{name['name']}")
        assert not proxy.applier.outcome.refused
        assert proxy.applier.current.table.binds or "certificateRefs" in text, "no port: not even its Secret is missing"


class MissingFiles(Exception):
    """All that the proxy refuses is what needs a file that a reader has and this test has not."""


class FilesAreElsewhere(Http1Endpoints):
    """A proxy alone, whose file may name other files."""

    def load(self, text: str) -> None:
        try:
            super().load(text)
        except AssertionError:
            refused = self.applier.outcome.refused.values()
            if "file:" in text and all("secret/default/" in each for each in refused):
                raise MissingFiles from None
            raise


WEB = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web}
spec:
  gatewayClassName: gatewright
  listeners: [{name: http, port: 8080, protocol: HTTP}]
"""
CLASS = """
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: gatewright}
spec: {controllerName: gatewright.dev/controller}
"""
