"""Play a case against a gateway and say what was wrong: a list of complaints, empty when all was right."""

from __future__ import annotations

import time
from collections.abc import Sequence

import h11

from tests.harness.patience import PATIENCE
from tests.raw.case import Case, Seen, get
from tests.raw.client import Conversation
from tests.raw.origin import Origin, Recorded
from tests.raw.parsers import Parsed, read_h11

_PROBE = get(b"/probe")


def play(case: Case, address: tuple[str, int], origin: Origin) -> list[str]:
    """Complaints about one case."""
    before = origin.mark()
    with Conversation(address) as talk:
        talk.send(case.sent)
        if case.half_close:
            talk.half_close()
        problems = _answers(case, talk) or _ending(case, talk)
        problems += _origin(case, origin.since(before))
        if case.closes is False and not problems:
            problems += _usable(talk)
    return problems


def _answers(case: Case, talk: Conversation) -> list[str]:
    methods = case.methods or (b"GET",) * len(case.answers)
    for place, (status, method) in enumerate(zip(case.answers, methods, strict=True)):
        last = place == len(case.answers) - 1
        try:
            answer = talk.answer(method)
        except h11.RemoteProtocolError as error:
            return [] if case.silent and last and talk.ended and not talk.left else [f"answer {place}: {error}"]
        if answer is None:
            return [f"answer {place}: none came, wanted {status} ({talk.ended or 'still open'})"]
        if answer.status != status and not (last and answer.status == case.either):
            return [f"answer {place}: {answer.status}, wanted {status}"]
    return []


def _ending(case: Case, talk: Conversation) -> list[str]:
    """Where the connection must stay usable, the next request shows whether anything else came (`_usable`)."""
    if case.closes and not talk.await_end():
        return ["the connection stayed open"]
    if case.closes is not False and not talk.is_quiet():
        return [f"more came after the last answer: {talk.left[:80]!r}"]
    return []


def _usable(talk: Conversation) -> list[str]:
    talk.send((_PROBE,))
    answer = talk.answer()
    if talk.ended or answer is None:
        return [f"the connection was closed ({talk.ended or 'no answer'})"]
    return [] if answer.body == b"GET /probe" else [f"the next request got {answer}"]


def _origin(case: Case, parts: Sequence[tuple[bytes, Recorded]]) -> list[str]:
    """Compare what reached the origin. Order over several connections is not asked for."""
    found: list[Parsed] = []
    problems: list[str] = []
    for data, connection in parts:
        reading = read_h11(data)
        found += reading.requests
        if reading.rest.startswith("error"):
            problems.append(f"h11 cannot read what the origin got: {reading.rest}")
        elif reading.rest and not _ends(connection):
            problems.append("an incomplete request was left open at the origin")
    if len(found) != len(case.seen):
        return [*problems, f"the origin saw {[(p.method, p.target) for p in found]}, wanted {len(case.seen)} requests"]
    for parsed, seen in zip(found, case.seen, strict=True):
        problems += compare(parsed, seen)
    return problems


def _ends(connection: Recorded) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not connection.ended and time.monotonic() < deadline:
        time.sleep(0.005)
    return bool(connection.ended)


def compare(parsed: Parsed, seen: Seen) -> list[str]:
    """Complaints about one forwarded request."""
    problems = []
    for name, got, wanted in (
        ("method", parsed.method, seen.method),
        ("target", parsed.target, seen.target),
        ("body", parsed.body, seen.body),
        ("trailers", parsed.trailers, tuple(sorted(seen.trailers.items()))),
    ):
        if got != wanted:
            problems.append(f"{name} {_short(got)}, wanted {_short(wanted)}")
    if not parsed.host or (seen.host is not None and parsed.host != seen.host):
        problems.append(f"host {parsed.host!r}, wanted {seen.host!r}")
    problems += [f"{n!r} is {parsed.values(n)}, wanted {v!r}" for n, v in seen.has.items() if parsed.values(n) != [v]]
    problems += [f"{n!r} reached the origin: {parsed.values(n)}" for n in seen.lacks if parsed.values(n)]
    return problems


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 120 else f"{text[:100]}... ({len(text)})"
