"""Response steps: which of them run, in which order, and what an answer says of its body then."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from dataplane.chain.chain import Chain
from dataplane.chain.filter import WHOLE, Filter
from dataplane.chain.reply import Reply
from dataplane.http.heads import Head
from dataplane.http.rules import MAX_BUFFER, HttpRules
from dataplane.proxy.steps import response_steps
from dataplane.proxy.steps.response_steps import GATEWAY, ROUTE, UPSTREAM
from tests.fakes.memory_proxy import Pending

STOP = Reply(502, "ResponseTooLarge")
Hook = Callable[[Any], Any] | None


class Steps:
    """An exchange with these response hooks, by chain; each notes its name."""

    def __init__(self, stage: int = UPSTREAM, stopped: int = -1, **chains: str) -> None:
        self.ran: list[str] = []
        self.pending = Pending()
        made = {name: Chain([Filter(each, response=self.hook(each)) for each in chains.get(name, "").split()])
                for name in ("target", "route", "gateway")}  # fmt: skip
        self.x: Any = SimpleNamespace(
            target_plan=SimpleNamespace(chain=made["target"]),
            policies=SimpleNamespace(chain=made["route"]),
            listener=SimpleNamespace(chain=made["gateway"]),
            stage=stage,
            stopped=stopped,
        )

    def hook(self, name: str) -> Hook:
        """Of a name with `!` that answers, with `~` that waits, with `-` there is none."""
        if name.startswith("-"):
            return None

        async def wait() -> Reply | None:
            await self.pending
            self.ran.append(name)
            return STOP if "!" in name else None

        def run(x: Any) -> Any:
            if "~" in name:
                return wait()
            self.ran.append(name)
            return STOP if "!" in name else None

        return run

    def outcome(self, run: Callable[[Any], Any] = response_steps.run) -> Any:
        """What comes of it, to its end."""
        found = run(self.x)
        if found is None or isinstance(found, Reply):
            return found
        while True:
            try:
                found.send(None)
            except StopIteration as end:
                return end.value
            self.pending.set_result(None)


@pytest.mark.parametrize("run", [response_steps.run_fast, response_steps.run_later])
@pytest.mark.parametrize(
    ("chains", "ran", "place"),
    [
        ({}, [], None),
        ({"route": "r1 - r2"}, ["r2", "r1"], None),
        ({"route": "r1~ r2"}, ["r2", "r1~"], None),
        ({"route": "r1 r2~ r3", "gateway": "g1"}, ["r3", "r2~", "r1", "g1"], None),
        ({"route": "r1! r2"}, ["r2", "r1!"], (ROUTE, 0)),
        ({"route": "r1!"}, ["r1!"], (ROUTE, 0)),
        ({"route": "r1! r2~"}, ["r2~", "r1!"], (ROUTE, 0)),
        ({"target": "t1", "route": "r1"}, ["t1", "r1"], None),
        ({"route": "r1", "gateway": "g1!"}, ["r1", "g1!"], (GATEWAY, 0)),
    ],
)
def test_the_shorter_way_comes_to_the_same(
    run: Callable[[Any], Any], chains: dict[str, str], ran: list[str], place: tuple[int, int] | None
) -> None:
    steps = Steps(**chains)  # type: ignore[arg-type]
    assert steps.outcome(run) is (None if place is None else STOP)
    assert steps.ran == ran
    if place is not None and len(ran) > 1:
        assert (steps.x.stage, steps.x.stopped) == place


# --- how much of a body is buffered for them


def reader(size: int) -> Chain:
    return Chain([Filter("a", response=lambda x: None, response_body=size)] if size else [])


HELD = 5_000


@pytest.mark.parametrize(
    ("sizes", "may", "judged", "most"),
    [
        ((0, 0, 0), MAX_BUFFER, False, 0),
        ((10, 0, 0), MAX_BUFFER, False, 10),
        ((10, 30, 20), MAX_BUFFER, False, 30),
        ((WHOLE, 0, 0), MAX_BUFFER, False, MAX_BUFFER),
        ((0, 0, 0), MAX_BUFFER, True, MAX_BUFFER),
        ((10, 0, 0), HELD, False, 10),
        ((HELD + 1, 0, 0), HELD, False, HELD),
        ((0, WHOLE, 0), HELD, False, HELD),
        ((10, 0, 0), HELD, True, HELD),
        ((WHOLE, 0, 0), 2 * MAX_BUFFER, False, 2 * MAX_BUFFER),
        ((10, 0, 20), 2 * MAX_BUFFER, False, 20),
    ],
)
@pytest.mark.parametrize("has_retries", [True, False])
def test_the_largest_wish_within_the_limit(
    sizes: tuple[int, int, int], may: int, judged: bool, most: int, has_retries: bool
) -> None:
    """`judged`: a retry may read it too, unless the response was accepted."""
    rules = HttpRules(max_buffer=may)
    target, route, gateway = map(reader, sizes)
    x: Any = SimpleNamespace(
        target_plan=SimpleNamespace(chain=target),
        policies=SimpleNamespace(chain=route),
        listener=SimpleNamespace(chain=gateway),
        stage=UPSTREAM,
        retries=SimpleNamespace(decided=not judged) if judged or has_retries else None,
        may_hold=rules.may_hold,
    )
    assert response_steps.most_buffered(x) == most
    assert response_steps.is_read(x) == any(sizes)


# --- what the head says of a body that steps changed

OLD = b"\r\nx-a: 1\r\ncontent-length: 3\r\ntrailer: x-sum\r\n"


def length(size: int) -> bytes:
    return b"content-length: %d\r\n" % size


@pytest.mark.parametrize(
    ("method", "was", "status", "body", "block", "sent"),
    [
        (b"GET", 200, 200, b"other", length(5), b"other"),
        (b"GET", 200, 200, b"", length(0), b""),
        (b"HEAD", 200, 200, b"other", length(5), b""),
        (b"GET", 200, 204, b"other", b"", b""),
        (b"GET", 200, 304, None, b"", b""),
        (b"GET", 200, 205, b"other", length(0), b""),
        (b"GET", 200, 205, None, length(0), b""),
        (b"GET", 204, 200, None, length(0), b""),
        (b"GET", 304, 200, b"other", length(5), b"other"),
    ],
)
def test_another_answer_says_its_own_length(
    method: bytes, was: int, status: int, body: bytes | None, block: bytes, sent: bytes
) -> None:
    x: Any = SimpleNamespace(method=method, status=status, response=Head(OLD))
    x.response_body, x.response_body_changed = body, body is not None
    assert response_steps.other(x, was) == (b"\r\nx-a: 1\r\n" + block, sent)
    assert x.response.block == OLD  # for expressions and the log
