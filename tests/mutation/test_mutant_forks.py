"""Questions to forks of a process that has collected tests: the same verdicts as of a process of its own, or none."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from tests.mutation import forks, session, swap, test_mutation
from tests.mutation.mutants import mutants
from tests.mutation.run import NO_VERDICT, Fault, Outcome, run

BEFORE = """
import functools

def plain(a): return a < 1

class Kind:
    @property
    def size(self): return 1 + 1
    @staticmethod
    def pick(a): return [each for each in a if each > 1]

@functools.cache
def cached(a): return max(a, 3)

def made(limit):
    def inner(a): return a > limit
    return inner

made_once = made(2)
gone = (lambda a: a) if Kind else None
"""


@pytest.fixture
def module(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"__name__": "swapped"}
    exec(compile(BEFORE, f"{tmp_path}/swapped.py", "exec", dont_inherit=True), found)
    return found


SWAPS: list[tuple[str, str, Callable[[dict[str, Any]], object]]] = [
    ("a < 1", "a <= 1", lambda module: module["plain"](1)),
    ("1 + 1", "1 - 1", lambda module: not module["Kind"]().size),
    ("each > 1", "each >= 1", lambda module: module["Kind"].pick((0, 1)) == [1]),
    ("max(a, 3)", "min(a, 3)", lambda module: module["cached"].__wrapped__(1) == 1),
    ("a > limit", "a >= limit", lambda module: module["made_once"](2) and module["made"](3)(3)),
]


@pytest.mark.parametrize(("before", "after", "is_seen"), SWAPS)
def test_functions_that_are_loaded_have_the_fault(
    tmp_path: Path, module: dict[str, Any], before: str, after: str, is_seen: Callable[[dict[str, Any]], object]
) -> None:
    path = f"{tmp_path}/swapped.py"
    functions = swap.loaded()[path]
    assert swap.swap(functions, path, BEFORE, BEFORE) == 0 and not is_seen(module)
    assert swap.swap(functions, path, BEFORE, BEFORE.replace(before, after)) > 0
    assert is_seen(module)


@pytest.mark.parametrize(
    ("before", "after"),
    [("return a > limit", "return a"), ("    def inner(a): return a > limit\n", "")],
    ids=["it reads no variable of the outer one any more", "it is gone"],
)
def test_a_function_that_cannot_have_the_other_code_says_so(
    tmp_path: Path, module: dict[str, Any], before: str, after: str
) -> None:
    path = f"{tmp_path}/swapped.py"
    found: list[FunctionType] = [module["made_once"]]
    with pytest.raises(swap.Unswappable, match="inner"):
        swap.swap(found, path, BEFORE, BEFORE.replace(before, after))


TOY = f"""{test_mutation.TOY}

def length():
    return 3


LENGTH = length()
"""
TESTS = """
import subprocess, sys
from toy import LENGTH, largest, forever


def test_here():
    assert largest([2, 3, 1]) == 3
    forever(True)


def test_in_a_process(tmp_path):
    code = "from toy import largest; print(largest([2, 3, 1]))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "3\\n"


def test_a_module_that_is_loaded_late():
    import late

    assert late.doubled(2) == 4


def test_length():
    assert LENGTH == 3
"""
LATE = "def doubled(number):\n    return 2 * number\n"

Asking = Callable[[str, str, str], Outcome | None]


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    for name, text in {"toy.py": TOY, "late.py": LATE, "test_toy.py": textwrap.dedent(TESTS)}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\nmarkers = ['slow']\n")
    return tmp_path


def fault(toy: Path, before: str, after: str) -> Fault:
    found = (each for name in ("toy.py", "late.py") for each in mutants(name, (toy / name).read_text()))
    (mutant,) = (each for each in found if (each.before, each.after) == (before, after))
    return session.planted_in(toy, mutant)


NONE = "return found", "return None"


@pytest.mark.process
@pytest.mark.leaves("Python's fork server stays as long as the process")
def test_a_fork_says_what_a_process_of_its_own_says(toy: Path) -> None:
    with forks.collected([toy / "test_toy.py"], jobs=2, root=toy) as collected:

        def ask(tests: str, edit: tuple[str, str] | None = None, seconds: float = 20.0) -> tuple[int, str] | None:
            outcome = collected.ask([tests], edit and fault(toy, *edit), seconds)
            return outcome and (outcome.code, outcome.by)

        here, process = "test_toy.py::test_here", "test_toy.py::test_in_a_process"
        assert ask("test_toy.py") == (0, ""), "without a fault"
        assert ask(here, NONE) == (1, here)
        assert ask(process, NONE) == (1, process)
        assert ask(f"{toy}/test_toy.py", NONE) == (1, here), "the first of a whole file"
        assert ask(here, ("if number > found:", "if (number >= found):")) == (0, ""), "it changes nothing"
        late = "test_toy.py::test_a_module_that_is_loaded_late"
        assert ask(late, ("return 2 * number", "return (2 + number)")) == (0, ""), "two and two"
        assert ask(late, ("return 2 * number", "return 3 * number")) == (1, late)
        endless = ask("test_toy.py", ("while flag: flag = False", "while flag: flag = True"), 2.0)
        assert endless == (NO_VERDICT, "no verdict")
        assert ask("test_toy.py") == (0, ""), "what a fork did, no other one sees"
        assert ask("test_toy.py::test_length", ("return 3", "return 4")) == (0, ""), "it has run before"
        assert ask("test_toy.py::test_absent", NONE) is None


@pytest.mark.process
@pytest.mark.leaves("Python's fork server stays as long as the process")
def test_tests_that_cannot_be_collected_say_nothing(toy: Path) -> None:
    (toy / "test_toy.py").write_text("import absent\n")
    with forks.collected([toy / "test_toy.py"], jobs=1, root=toy) as collected:
        assert collected.ask(["test_toy.py"], None, 20.0) is None
        assert collected.ask(["test_toy.py"], None, 20.0) is None, "and once more"


@pytest.mark.process
@pytest.mark.leaves("Python's fork server stays as long as the process")
@pytest.mark.parametrize(
    ("edit", "is_killed", "questions"),
    [
        (NONE, True, 0),
        (("if number > found:", "if (number >= found):"), False, 1),
        (("return 3", "return 4"), True, 2),
    ],
    ids=["noticed in a fork", "noticed by nobody", "noticed where it is imported"],
)
def test_what_no_fork_notices_is_asked_of_a_process_of_its_own(
    toy: Path, monkeypatch: pytest.MonkeyPatch, edit: tuple[str, str], is_killed: bool, questions: int
) -> None:
    asked: list[object] = []

    def counted(tests: Sequence[Path | str], planted: Fault | None, seconds: float) -> Outcome:
        asked.append(planted)
        return run(tests, planted, seconds, toy)

    monkeypatch.setattr(session, "run", counted)
    monkeypatch.setattr(session, "ROOT", toy)
    (mutant,) = (each for each in mutants("toy.py", TOY) if (each.before, each.after) == edit)
    with forks.collected([toy / "test_toy.py"], jobs=1, root=toy) as collected:
        outcome = session.Asker(collected, is_quick=False, given=[toy / "test_toy.py"]).asked(mutant)
    assert (outcome.is_killed, len(asked[:2])) == (is_killed, questions)
