"""What guards do in one go, and in all, for texts that make their patterns slow."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Generator, Sequence
from time import thread_time

import pytest

from dataplane.chain.filter import Refused
from dataplane.guards import judging
from dataplane.guards.builtins import builtin
from dataplane.guards.judging import Judge
from dataplane.guards.masking import Masker, is_found
from dataplane.guards.patterns import Pattern, of_user, whole_test
from dataplane.guards.plan import Guard, Guards, Rejected
from dataplane.guards.values import Action, Phase, Scope, Text, TooCostly
from gatewright.turns import at_once

SIZE = 16 << 10
SCRIPT = "(?i)<script[^>]{0,500}>"
CHANCE = random.Random(5)


def drawn(*parts: str) -> bytes:
    return "".join(CHANCE.choices(parts, k=SIZE // 2)).encode()[:SIZE]


TEXTS = {
    "scripts": drawn("<script", "<SCRIPT", " ", "a", "\u00e9", "\u65e5", "<", "<script <script"),
    "one letter": b"a" * SIZE,
    "letters": drawn("a", "b", "A", "1", "."),
    "digits": drawn(*"0123456789 -.()+"),
    "almost numbers": b"123-45-678 " * (SIZE // 11),
    "mails": b"a@b.c" * (SIZE // 5),
}
PATTERNS = {
    **{name: (builtin(name),) for name in ("Ssn", "CreditCard", "PhoneNumber", "Email", "CaSin")},
    **{
        each: (of_user(each),)
        for each in (SCRIPT, "(?:a.{0,250}b)?", "[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}", "(a|b)*a(a|b){20}c")
    },
}


def longest(work: Generator[None, None, object]) -> float:
    """Seconds between two pauses, at most. The beginning is enough."""
    most, since = 0.0, thread_time()
    for _ in range(100):
        try:
            next(work)
        except StopIteration:
            break
        most, since = max(most, thread_time() - since), thread_time()
    return max(most, thread_time() - since)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_guard_does_little_between_two_pauses(pattern: str, text: str) -> None:
    used = PATTERNS[pattern]
    for _ in range(3):
        if max(longest(is_found(used, TEXTS[text])), longest(Masker(used).feed(TEXTS[text], True))) < 0.025:
            return
    pytest.fail("a pause came too late, three times")


@pytest.mark.parametrize(
    ("before", "inside", "behind"), [(0, 1, 0), (0, 500, 9000), (3000, 490, 0), (2047, 500, 5), (9000, 500, 9000)]
)
def test_a_match_is_found_wherever_searches_overlap(before: int, inside: int, behind: int) -> None:
    text = b"<" * before + b"<script" + b"x" * inside + b">" + b"<" * behind
    pattern = of_user(SCRIPT)
    assert at_once(is_found((pattern,), text)) is True
    assert at_once(is_found((pattern,), text.replace(b">", b"<"))) is False


@pytest.mark.parametrize(
    ("pattern", "bound", "is_refused"),
    [(SCRIPT, 1024, False), (SCRIPT, 4096, True), ("a.{0,900}b", 2048, True), (r"\pL{5,}q", 1024, False)],
)
def test_a_pattern_that_takes_long_where_it_is_looked_for_once_is_refused(
    pattern: str, bound: int, is_refused: bool
) -> None:
    if is_refused:
        with pytest.raises(Refused, match=f"looked for in {2 * bound:,} bytes"):
            of_user(pattern, bound)
    else:
        of_user(pattern, bound)


def test_a_header_is_too_long_for_a_pattern_and_not_just_another() -> None:
    test = whole_test("a.{0,100}b.{0,100}c")
    assert test(b"abc") and not test(b"abd")
    with pytest.raises(TooCostly):
        test(b"a" * 8000)
    with pytest.raises(Refused, match="256 bytes"):
        whole_test(r".*\pL{60}.*x")


def judged(rejects: bool, patterns: Sequence[Pattern], texts: Sequence[bytes]) -> tuple[list[str], list[Action]]:
    counted: list[Action] = []

    async def ask(*_: object) -> None:
        raise AssertionError("no server is asked")

    guards = Guards((Guard("request[0].regex", "no", patterns=tuple(patterns), rejects=rejects),))
    judge = Judge(guards, Phase.REQUEST, ask, lambda guard, phase, action: counted.append(action))  # type: ignore[arg-type]
    return asyncio.run(judge.texts([Text(each.decode(), Scope.MESSAGES) for each in texts])), counted


@pytest.mark.parametrize("rejects", [True, False])
def test_who_has_no_time_left_has_not_judged(rejects: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No clock of the machine is read: each look at it takes 3 ms. Several texts have their time together."""
    now = 0.0

    class Clock:
        @staticmethod
        def thread_time() -> float:
            nonlocal now
            now += 0.003
            return now

    monkeypatch.setattr(judging, "time", Clock)
    monkeypatch.setattr(judging, "MAX_SECONDS", 0.5)
    texts = [b"plain" * 1000] * 4
    said, counted = judged(rejects, [of_user("x+")], texts)
    assert [each.encode() for each in said] == texts and counted == [Action.ALLOW]
    with pytest.raises(Rejected, match="take too long") as rejected:
        judged(rejects, [of_user("x+")], texts * 50)
    assert rejected.value.is_unavailable


@pytest.mark.parametrize("rejects", [True, False])
def test_many_short_texts_let_others_go_on_as_one_long_one_does(rejects: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock takes 0.1 ms; a turn has 2."""
    now, turns = 0.0, 0

    class Clock:
        @staticmethod
        def thread_time() -> float:
            nonlocal now
            now += 0.0001
            return now

    class Turn:
        def __await__(self) -> Generator[None, None, None]:
            nonlocal turns
            turns += 1
            yield

    monkeypatch.setattr(judging, "time", Clock)
    monkeypatch.setattr(judging, "NEXT_TURN", Turn())
    said, _ = judged(rejects, [of_user("secret")], [b"a"] * 1000)
    assert said == ["a"] * 1000 and turns >= 50
