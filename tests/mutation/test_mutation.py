"""The mutation run itself: which faults it finds, that a planted one is noticed or survives, what it says of that."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import pytest

from tests.mutation import index, probes, selection, session
from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.run import NO_TESTS, NO_VERDICT, NOT_FOUND, UNPROVEN, Fault, Outcome, Record, run

pytestmark = pytest.mark.process  # it runs pytest

LEFT_ALONE = '''
"""A docstring."""
from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Literal

log = logging.getLogger("x")
if TYPE_CHECKING:
    LIMIT = 1

@decorated(1)
class Toy:
    __slots__ = ("a",)
    kind: Literal[1, 2]

    def __init__(self, a: int | None) -> None:
        self.a = a

    def __repr__(self) -> str:
        return "x" if self.a == 1 else ""

    def check(self) -> None:
        assert self.a == 1
        log.info("%d", 1)
        raise ValueError(f"{1 + 1}")

class Like(Protocol):
    def check(self, most: int = 1, text: str = "") -> bool: ...

    def ask(self, most: int = 1) -> bool:
        """A docstring."""
        ...
'''


def edits(text: str) -> list[tuple[str, str]]:
    """(kind, the whole text with the fault)"""
    return [(mutant.kind, mutant.apply(text)) for mutant in mutants("toy.py", text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a < b", [("comparison", "(a <= b)")]),
        ("a not in b", [("comparison", "(a in b)")]),
        ("a is None", [("comparison", "(a is not None)")]),
        ("a and b and c", [("and/or", "(a or b or c)")]),
        ("not a", [("not", "(a)")]),
        ("a - b", [("arithmetic", "(a + b)")]),
        ("'%s' % a", []),
        ("a if b else c", [("condition", "a if (not b) else c")]),
        ("x[0:]", [("constant", "x[1:]")]),
        ("[True, 99, 100, 0.5, 0.0, '', b'', 'text']", None),
        ("é == 1", [("comparison", "(é != 1)"), ("constant", "é == 2")]),
    ],
)
def test_faults_of_an_expression(text: str, found: list[tuple[str, str]] | None) -> None:
    edited = [(kind, after.removeprefix("y = ")) for kind, after in edits(f"y = {text}")]
    if found is None:
        constants = ["False", "100", "200", "1.0", "1.0", "'x'", "b'x'"]
        assert [kind for kind, _ in edited] == ["constant"] * 7
        assert all(after.count(constant) for (_, after), constant in zip(edited, constants, strict=True))
    else:
        assert sorted(edited) == sorted(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a.b = c", [("removal", "pass")]),
        ("a = c", []),
        ("a += c", [("removal", "pass"), ("arithmetic", "a -= c")]),
        ("call(a)", [("removal", "pass")]),
        ("min(a, b)", [("removal", "pass"), ("min/max", "max(a, b)")]),
        ("raise Error(a)", [("removal", "pass")]),
        ("def f(a=1): return g", [("constant", "def f(a=2): return g"), ("return", "def f(a=1): return None")]),
        ("while a: break", [("condition", "while (not a): break"), ("break", "while a: continue")]),
        ("try: pass\nexcept E: pass", [("except", "try: pass\nexcept E: raise")]),
        ("zip(a, b, strict=True)", [("removal", "pass")]),
    ],
)
def test_faults_of_a_statement(text: str, found: list[tuple[str, str]]) -> None:
    assert sorted(edits(text)) == sorted(found)


def test_what_is_left_alone() -> None:
    assert [mutant.before for mutant in mutants("toy.py", LEFT_ALONE)] == ['raise ValueError(f"{1 + 1}")']


def test_every_fault_of_the_product_is_another_program() -> None:
    sources = selection.sources()
    for mutant in session.sample(session.candidates(), 300, seed=1):
        text = sources[mutant.file]
        assert mutant.before in text.splitlines()[mutant.line - 1]
        compile(mutant.apply(text), mutant.file, "exec")


def test_a_sample_is_of_all_packages_and_the_same_for_a_seed() -> None:
    found = session.candidates()
    chosen = session.sample(found, 200, seed=5)
    assert chosen == session.sample(found, 200, seed=5) != session.sample(found, 200, seed=6)
    assert {session.package_of(mutant) for mutant in chosen} == {session.package_of(mutant) for mutant in found}
    assert 190 <= len(chosen) <= 240 and len({(mutant.file, mutant.line) for mutant in chosen}) == len(chosen)


@pytest.mark.parametrize(("line", "at_import"), [(1, True), (3, True), (4, False), (5, False), (6, True)])
def test_what_is_executed_at_import(line: int, at_import: bool) -> None:
    text = "A = 1\nclass C:\n    async def f(self, a=A):\n        if a:\n            return 1\n    b = 2\n"
    assert probes.runs_at_import(text, line) is at_import


def test_every_module_has_tests_to_ask_and_those_named_after_it_are_first() -> None:
    for file in selection.sources():
        assert selection.ranked(file), file
    first = selection.ranked("dataplane/link/buckets.py")[0]
    assert first.name == "test_buckets.py"
    assert set(selection.ranked("dataplane/link/buckets.py")) == set(selection.files("dataplane.link"))


def test_equivalent_faults_are_still_there() -> None:
    sources = selection.sources()
    found = {(each.file, each.before, each.after) for file in sources for each in mutants(file, sources[file])}
    assert set(EQUIVALENT) <= found


TOY = """
def largest(numbers):
    found = numbers[0]
    for number in numbers:
        if number > found:
            found = number
    return found


def forever(flag):
    while flag: flag = False
"""
ASKED = """
import subprocess, sys
from toy import largest, forever


def test_here():
    assert largest([2, 3, 1]) == 3
    forever(True)


def test_in_a_process():
    code = "from toy import largest; print(largest([2, 3, 1]))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "3\\n"
"""


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "test_toy.py").write_text(textwrap.dedent(ASKED))
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers = ['slow']\n")
    return tmp_path


def ask(toy: Path, before: str, after: str, test: str = "") -> Outcome:
    return run([Path(f"{toy}/test_toy.py{test}")], planted(toy, before, after), session.ALL[1], toy)


def planted(toy: Path, before: str = "return found", after: str = "return None") -> Fault:
    (mutant,) = (each for each in mutants("toy.py", TOY) if (each.before, each.after) == (before, after))
    return session.planted_in(toy, mutant)


def certain(toy: Path, seconds: float) -> Outcome:
    return session.certain(partial(run, root=toy), planted(toy), [toy / "test_toy.py"], seconds)


@pytest.mark.leaves("Python's fork server stays as long as the process")
def test_a_fault_is_noticed_survives_or_hangs(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "ALL", (0.0, 20.0))
    fault = "if number > found:", "if (number >= found):"
    assert ask(toy, *fault).code == 0, "equal numbers make no difference"
    noticed = ask(toy, "return found", "return None")
    assert (noticed.is_killed, noticed.by) == (True, "test_toy.py::test_here")
    in_a_process = ask(toy, "return found", "return None", "::test_in_a_process")
    assert (in_a_process.is_killed, in_a_process.by) == (True, "test_toy.py::test_in_a_process")
    (toy / "test_toy.py").write_text(f"{ASKED}\n\nassert largest([1])\n")
    unread = ask(toy, "return found", "return None", "::test_here")
    assert (unread.is_killed, unread.by) == (True, "test_toy.py")
    (toy / "conftest.py").write_text("from toy import largest\n\nassert largest([1])\n")
    assert ask(toy, "return found", "return None", "::test_here").is_killed
    (toy / "conftest.py").unlink()
    monkeypatch.setattr(session, "ALL", (0.0, 3.0))
    endless = ask(toy, "while flag: flag = False", "while flag: flag = True")
    assert (endless.is_killed, endless.code, endless.by) == (True, NO_VERDICT, "no verdict")
    assert (toy / "toy.py").read_text() == TOY
    assert not list(toy.rglob("*.pyc"))


NAMED = """
import pytest
from toy import largest

@pytest.mark.parametrize("most", [largest([2, 3, 1])])
def test_named(most):
    assert most

def test_other():
    assert largest([1]) == 1
"""


@pytest.mark.leaves("Python's fork server stays as long as the process")
def test_a_test_whose_name_the_fault_has_changed_is_left_out(toy: Path) -> None:
    (toy / "test_toy.py").write_text(NAMED)
    tests = ["test_toy.py::test_named[3]", "test_toy.py::test_other"]
    assert run(tests, None, 20.0, toy).code == 0
    noticed = run(tests, planted(toy), 20.0, toy)
    assert (noticed.is_killed, noticed.by) == (True, "test_toy.py::test_other")
    assert run(tests[:1], planted(toy), 20.0, toy).code == NOT_FOUND, "there is nobody else to ask"


CRASHES = "def test_dies():\n    from toy import largest\n    import os\n    {when} and os._exit(0)\n"


@pytest.mark.leaves("Python's fork server stays as long as the process")
@pytest.mark.parametrize(
    ("when", "is_killed"), [("largest([2]) != 2", True), ("True", False)], ids=["for the fault", "whatever it meets"]
)
def test_a_process_without_a_verdict_is_the_work_of_the_fault_or_counts_for_nothing(
    toy: Path, when: str, is_killed: bool
) -> None:
    (toy / "test_toy.py").write_text(CRASHES.format(when=when))
    assert certain(toy, 20.0).is_killed == is_killed


def test_what_a_test_logged_is_no_test() -> None:
    assert (
        Outcome(1, "ERROR    proxy:worker.py:7 gone\nFAILED tests/test_a.py::test_b - no").by
        == "tests/test_a.py::test_b"
    )


def test_arguments_of_a_test_may_have_spaces() -> None:
    name = "tests/test_a.py::test_b[a - b, c]"
    assert Outcome(1, f"FAILED {name} - AssertionError: [x] - y").by == Outcome(1, f"FAILED {name}").by == name


WAITS = (
    "import threading\n\n\ndef test_waits():\n    from toy import largest\n    {when} and threading.Event().wait()\n"
)


@pytest.mark.leaves("Python's fork server stays as long as the process")
def test_who_only_waits_is_ended_long_before_its_time(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.mutation.run.IDLE", 1.0)
    (toy / "test_toy.py").write_text(WAITS.format(when="largest([2]) != 2"))
    outcome = certain(toy, 200.0)
    assert (outcome.is_killed, outcome.was_cut) == (True, True)
    (toy / "test_toy.py").write_text(WAITS.format(when="True"))
    assert certain(toy, 200.0).code == UNPROVEN


def outcome(code: int) -> Outcome:
    return Outcome(code, "")


def fault(file: str, line: int) -> Mutant:
    return Mutant(file, line, "not", 0, 0, "", "if not a:", "if a:")


def test_the_report_names_survivors_and_planes_with_too_few(capsys: pytest.CaptureFixture[str]) -> None:
    good = {fault("dataplane/net/a.py", line): outcome(int(line > 0)) for line in range(10)}
    assert session.report(good) == 0
    printed = capsys.readouterr().out
    assert "dataplane             9   10   90.0%\n" in printed
    assert "1 survived\ndataplane/net/a.py:0 [not]  if not a:  ->  if a:\n" in printed
    assert "controlplane" not in printed
    bad = {fault("gatewright/api/b.py", line): outcome(int(line > 1)) for line in range(10)}
    bad |= {fault("gatewright/api/b.py", 10): outcome(NO_TESTS)}
    assert session.report(good | bad) == 1
    assert "gatewright            8   11   72.7%  too few\n" in capsys.readouterr().out


def test_a_package_without_faults_is_an_error() -> None:
    command = [sys.executable, "-m", "tests.mutation.session", "--only", "dataplane.nowhere"]
    done = subprocess.run(command, cwd=selection.ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "scripts/mutate: no faults in dataplane.nowhere\n"


PROBED = """
import functools

LIMIT = 5


def decided(number):
    "What it says."
    if number < LIMIT:
        return 1
    elif number == 7:
        return 2
    try:
        return [each for each in (number,) if each > 3]
    except ValueError:
        return 3


def untouched():
    return LIMIT


class Row:
    size = 3
    pick = staticmethod(lambda a: a + 1)
"""


def seen_by(text: str, before: str, run: str) -> set[probes.Spot]:
    """What the probes of this line say when `run` is evaluated in the module."""
    sources = {"toy.py": text}
    (mutant, *_) = (each for each in mutants("toy.py", text) if each.before == before)
    wanted = probes.Wanted.of([mutant], sources)
    found: set[probes.Spot] = set()
    module: dict[str, object] = {probes.NAME: found.add}
    exec(compile(probes.with_probes("toy.py", text, wanted.places["toy.py"]), "toy.py", "exec"), module)
    found.clear()
    eval(run, module)
    return {spot for spot in found if spot in wanted.spots}


@pytest.mark.parametrize(
    ("before", "run", "is_executed"),
    [
        ("if number < LIMIT:", "decided(1)", True),
        ("if number < LIMIT:", "untouched()", False),
        ("return 1", "decided(1)", True),
        ("return 1", "decided(9)", False),
        ("elif number == 7:", "decided(9)", True),
        ("elif number == 7:", "decided(1)", False),
        ("return [each for each in (number,) if each > 3]", "decided(9)", True),
        ("return 3", "decided(9)", False),
        ("LIMIT = 5", "decided(9)", True),
        ("LIMIT = 5", "untouched()", True),
        ("LIMIT = 5", "Row.pick(1)", False),
        ("pick = staticmethod(lambda a: a + 1)", "Row.pick(1)", True),
        ("pick = staticmethod(lambda a: a + 1)", "decided(1)", False),
        ("size = 3", "decided(1)", False),
    ],
)
def test_a_probe_is_seen_by_who_executes_its_statement(before: str, run: str, is_executed: bool) -> None:
    line = PROBED.splitlines().index(next(each for each in PROBED.splitlines() if each.strip() == before)) + 1
    seen = seen_by(PROBED, before, run)
    assert (("toy.py", line) in seen) == is_executed
    assert (("toy.py", probes.MODULE) in seen) == ("Row" not in run), "any function"


def test_probes_change_nothing_of_the_product_but_calls() -> None:
    sources = selection.sources()
    wanted = probes.Wanted.of(session.sample(session.candidates(), 300, seed=1), sources)
    for file, places in wanted.places.items():
        tree = probes.with_probes(file, sources[file], places)
        compile(tree, file, "exec")
        assert ast.dump(_without_probes(tree)) == ast.dump(ast.parse(sources[file])), file
        text = ast.unparse(probes.with_probes(file, sources[file], places))
        assert all(f"{probes.NAME}({spot!r})" in text for _, spot in places)


def _without_probes(tree: ast.AST) -> ast.AST:
    class Removed(ast.NodeTransformer):
        def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
            return None if probes.NAME in ast.dump(node.value)[:80] else self.generic_visit(node)

        def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
            self.generic_visit(node)
            return node.values[1] if probes.NAME in ast.dump(node.values[0])[:80] else node

    return Removed().visit(tree)


@pytest.mark.leaves("Python's fork server stays as long as the process")
def test_who_executes_a_statement_is_written_down(tmp_path: Path) -> None:
    tests = "tests/unit/app/test_turns.py"
    file = "controlplane/turns.py"
    for name in (tests, file):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((selection.ROOT / name).read_text())
    text = (tmp_path / file).read_text()
    line = text.splitlines().index("        while self._jobs:") + 3
    wanted = probes.Wanted({file: (((line, 12), (file, line)),)}, ((file, line), (file, 1), (file, probes.MODULE)))
    record = Record(tmp_path / index.FOLDER / "a.json", wanted)
    assert run([selection.ROOT / tests], None, 60.0, record=record).code == 0
    found = index.Index(tmp_path)
    assert found.of(file, line) == {
        f"{tests}::{name}"
        for name in ("test_a_paused_job_is_left_undone_at_the_end", "test_close_leaves_the_rest_undone")
    }
    assert found.of(file, 1) == found.of("controlplane/app.py", line) == set()
    assert found.of(file, line) < found.of(file, probes.MODULE) <= found.seconds.keys()
    index.digest.cache_clear()
    (tmp_path / file).write_text("")
    assert index.Index(tmp_path).of(file, line) == set(), "another file by now"


def test_tests_are_asked_by_rank_as_long_as_there_is_time(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    digests = {name: index.digest(tmp_path, name) for name in ("a.py", "t.py")}
    tests, seconds = ["t.py::far", "t.py::slow", "t.py::slower", "t.py::quick"], [0.1, 7.0, 2.0, 0.5]
    (tmp_path / index.FOLDER).mkdir(parents=True)
    (tmp_path / index.FOLDER / "a.json").write_text(
        json.dumps([digests, tests, seconds, {"a.py": {"5": [0, 1, 2, 3], "6": []}}])
    )
    found = index.Index(tmp_path)
    assert found.of("a.py", 5) == {*tests}
    assert found.of("a.py", 6) == found.of("a.py", 7) == set()
    chosen = found.within(found.of("a.py", 5), 8.0, rank=lambda test: test.endswith("far"))
    assert chosen == ["t.py::quick", "t.py::slower", "t.py::far"]


def test_tests_of_every_folder_are_asked_by_some_package() -> None:
    unit = selection.ROOT / "tests/unit"
    asked = {path for package in selection.TESTS for path in selection.files(package)}
    unasked = {path.relative_to(unit).parts[0] for path in unit.rglob("test_*.py") if path not in asked}
    assert unasked == set()
