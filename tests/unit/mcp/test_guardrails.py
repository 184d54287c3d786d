"""Guardrails of MCP messages: who is asked, what they are asked, what verdicts come to. No network."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.mcp import guardrails, verdicts
from dataplane.mcp.guardrails import REQUEST, RESPONSE, Message, Processor
from dataplane.mcp.verdicts import Failed, Outcome, Rejected
from gatewright.wire.external import ext_mcp_pb2 as pb

METHODS = {"tools/call": REQUEST, "tools/*": RESPONSE, "*/list": 0, "*": REQUEST | RESPONSE}
CALL = Message("tools/call", ("a",), b'{"name": "x"}', ((":path", b"/mcp"), ("x-a", b"1"), ("cookie", b"s")))


@pytest.mark.parametrize(
    ("methods", "method", "phases"),
    [
        (METHODS, "tools/call", REQUEST),
        (METHODS, "tools/list", RESPONSE),  # a prefix comes before a suffix
        (METHODS, "prompts/list", 0),
        (METHODS, "ping", REQUEST | RESPONSE),
        ({"tools/*": REQUEST}, "prompts/get", 0),  # no key: no call
        ({"tools/*": REQUEST, "tools/ca*": RESPONSE}, "tools/call", RESPONSE),  # the longest
        ({"*/list": REQUEST, "*ols/list": RESPONSE}, "tools/list", RESPONSE),
        ({"tools": REQUEST}, "tools/call", 0),
        ({"Tools/Call": REQUEST}, "tools/call", 0),
        ({"tools/*": REQUEST}, "toolsmith/list", 0),
        ({"tools/*": REQUEST}, "tools/", REQUEST),
        ({"*/list": REQUEST}, "mylist", 0),
        ({"*/list": REQUEST}, "/list", REQUEST),
    ],
)
def test_the_most_specific_key_counts(methods: dict[str, int], method: str, phases: int) -> None:
    assert Processor("b", guardrails.sorted_methods(methods)).phases(method) == phases


def test_keys_have_one_order() -> None:
    """Whole names, prefixes, suffixes, all; of one form the longest, then by the alphabet."""
    order = ["long/name", "aa", "ab", "b", "prefix*", "a*", "b*", "*/suffix/longer", "*/a", "*/b", "*"]
    found = guardrails.sorted_methods({key: number for number, key in enumerate(reversed(order))})
    assert [key for key, _ in found] == order
    assert [phases for _, phases in found] == list(reversed(range(len(order))))


@pytest.mark.parametrize(
    ("allowed", "disallowed", "seen"),
    [
        ((), (), [":path", "x-a", "cookie"]),  # an empty list allows all, pseudo-headers too
        ((), ("cookie",), [":path", "x-a"]),
        (("x-a", "cookie"), ("cookie",), ["x-a"]),  # who denies wins
        ((":path",), (), [":path"]),
        (("x-b",), (), []),
    ],
)
async def test_headers_that_are_told(allowed: tuple[str, ...], disallowed: tuple[str, ...], seen: list[str]) -> None:
    processor = Processor("b", (("*", 3),), allowed=frozenset(allowed), disallowed=frozenset(disallowed))
    said = Said(passes())
    await guardrails.judge([processor], REQUEST, CALL, None, said)
    assert [header.key for header in said.requests[0].headers] == seen


def verdict_of(metadata: dict[str, Any] | None = None, **more: Any) -> pb.McpRequestResult:
    made = pb.McpRequestResult(**more)
    made.metadata.update(metadata or {})
    return made


def passes(**more: Any) -> pb.McpRequestResult:
    passed: dict[str, Any] = {"pass": pb.Pass()}
    return verdict_of(**passed, **more)


def changes(content: bytes, **more: Any) -> pb.McpRequestResult:
    return verdict_of(mutated=content, **more)


def rejects(code: Any, reason: str = "", error: bytes = b"", **more: Any) -> pb.McpRequestResult:
    return verdict_of(error=pb.AuthorizationError(code=code, reason=reason, mcp_error=error), **more)


class Said:
    """Answers verdicts in turn, and keeps what it was asked."""

    def __init__(self, *verdicts: Any) -> None:
        self.verdicts = list(verdicts)
        self.requests: list[Any] = []

    async def __call__(self, processor: Processor, phase: int, message: bytes, x: Any) -> bytes:
        kind: Any = pb.McpRequest if phase == REQUEST else pb.McpResponse
        self.requests.append(kind.FromString(message))
        verdict = self.verdicts.pop(0)
        if isinstance(verdict, Exception):
            raise verdict
        return verdict if isinstance(verdict, bytes) else verdict.SerializeToString()


OPEN, CLOSED = Processor("open", (("*", 3),), fail_open=True), Processor("closed", (("*", 3),))


async def test_each_sees_what_the_ones_before_made() -> None:
    said = Said(changes(b'{"name": "y"}'), passes(), changes(b'{"name": "z"}'))
    outcome = await guardrails.judge([CLOSED, CLOSED, OPEN], REQUEST, CALL, None, said)
    assert [each.mcp_request for each in said.requests] == [b'{"name": "x"}', b'{"name": "y"}', b'{"name": "y"}']
    assert outcome.content == b'{"name": "z"}'
    assert [(*each.service_names, each.method) for each in said.requests] == [("a", "tools/call")] * 3


@pytest.mark.parametrize(
    ("code", "number"),
    [("UNKNOWN", -32603), ("PERMISSION_DENIED", -32001), ("RESOURCE_EXHAUSTED", -32003), ("INVALID", -32600)],
)
async def test_the_first_that_rejects_ends_it(code: str, number: int) -> None:
    verdict = rejects(pb.AuthorizationError.Code.Value(code), "no", b'{"a": 1}')
    said = Said(passes(), verdict)
    with pytest.raises(Rejected) as caught:
        await guardrails.judge([OPEN, OPEN, CLOSED], REQUEST, CALL, None, said)
    assert (caught.value.code, caught.value.text, caught.value.data) == (number, "no", {"a": 1})
    assert len(said.requests) == 2


BROKEN: list[Any] = [
    Failed("gone"),
    b"\xff\xff",
    pb.McpRequestResult(),
    changes(b"{"),
    changes(b"[]"),
    changes(b"[" * 100_000),
    changes(b""),
    changes(b'{"a": NaN}'),
    changes(b'{"a": "\xff"}'),
    changes(b'\xef\xbb\xbf{"a": 1}'),
    changes('{"a": 1}'.encode("utf-16")),
    passes(header_mutation=pb.HeaderMutation(set=[pb.Header(key="a b", value=b"1")])),
    passes(header_mutation=pb.HeaderMutation(set=[pb.Header(key="a", value=b"1\r\nb: 2")])),
    passes(header_mutation=pb.HeaderMutation(remove=[""])),
    passes(header_mutation=pb.HeaderMutation(set=[pb.Header(key="b", value=b"1"), pb.Header(key="a b", value=b"1")])),
    passes(header_mutation=pb.HeaderMutation(remove=["b", ""])),
    changes(b'{"name": "y"}', header_mutation=pb.HeaderMutation(remove=[""])),
    passes(metadata={"a": float("nan")}),
    passes(metadata={"a": "x" * 70_000}),
    changes(b'{"name": "y"}', metadata={"a": float("inf")}),
]


@pytest.mark.parametrize("broken", BROKEN)
async def test_one_that_fails(broken: Any) -> None:
    """FailOpen goes on with the message as it was; FailClosed rejects it."""
    outcome = await guardrails.judge([OPEN, CLOSED], REQUEST, CALL, None, Said(broken, passes()))
    assert outcome == Outcome(CALL.content)
    with pytest.raises(Rejected) as caught:
        await guardrails.judge([CLOSED, OPEN], REQUEST, CALL, None, Said(broken, passes()))
    assert (caught.value.code, caught.value.text) == (verdicts.FAILED, "guardrail failed")


async def test_the_last_word_about_a_header_counts() -> None:
    sets, removes = pb.HeaderMutation(set=[pb.Header(key="a", value=b"1")]), pb.HeaderMutation(remove=["A"])
    for first, second, headers, removed in (
        (sets, removes, {}, {"a"}),
        (removes, sets, {"a": b"1"}, set()),
    ):
        said = Said(passes(header_mutation=first), passes(header_mutation=second))
        outcome = await guardrails.judge([CLOSED, CLOSED], REQUEST, CALL, None, said)
        assert (outcome.headers, outcome.removed) == (headers, removed)


@pytest.mark.parametrize("metadata", [{"a": "x" * 70_000}, {"a": float("nan")}])
async def test_a_rejection_stands_whatever_metadata_is_beside_it(metadata: dict[str, Any]) -> None:
    with pytest.raises(Rejected) as caught:
        await guardrails.judge([OPEN], REQUEST, CALL, None, Said(rejects(1, "no", metadata=metadata)))
    assert (caught.value.text, caught.value.metadata) == ("no", {})


async def test_what_verdicts_say_is_there_also_of_a_message_that_is_rejected() -> None:
    said = Said(passes(metadata={"a": "1", "b": "1"}), rejects(1, "no", metadata={"b": "2"}))
    with pytest.raises(Rejected) as caught:
        await guardrails.judge([CLOSED, CLOSED], REQUEST, CALL, None, said)
    assert caught.value.metadata == {"a": "1", "b": "2"}
    with pytest.raises(Rejected) as caught:
        await guardrails.judge([CLOSED, CLOSED], REQUEST, CALL, None, Said(passes(metadata={"a": "1"}), Failed("gone")))
    assert caught.value.metadata == {"a": "1"}


async def test_a_message_for_several_targets_is_not_changed() -> None:
    message = Message("tools/list", ("a", "b"), None)
    said = Said(changes(b"{}", header_mutation=pb.HeaderMutation(remove=["x"])))
    outcome = await guardrails.judge([CLOSED], REQUEST, message, None, said, may_change=False)
    assert outcome == Outcome(None)
    assert not said.requests[0].HasField("mcp_request")
    assert list(said.requests[0].service_names) == ["a", "b"]


async def test_a_result() -> None:
    said = Said(pb.McpResponseResult(mutated=b'{"tools": []}'))
    message = Message("tools/list", ("a",), b'{"tools": [1]}', CALL.headers)
    outcome = await guardrails.judge([CLOSED], RESPONSE, message, None, said)
    assert (said.requests[0].mcp_response, outcome.content) == (b'{"tools": [1]}', b'{"tools": []}')


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return value


async def test_metadata_that_a_processor_could_not_read_is_absent() -> None:
    """Else a client that chooses a value could make a processor fail, and pass it where it fails open."""
    values = {"deep": nested(25), "flat": nested(24), "large": 10**400, "b": {"a": [1, "x"]}}
    said = Said(passes())
    processor = Processor("b", (("*", 3),), metadata=lambda context: values)
    await guardrails.judge([processor], REQUEST, CALL, None, said)
    assert set(said.requests[0].metadata_context.fields) == {"flat", "b"}


@pytest.mark.parametrize(
    ("value", "is_right"),
    [
        (b"a\tb", True),
        (b"\xff", True),
        (b"", True),
        (b"a\nb", False),
        (b"\x00", False),
        (b"\x1f", False),
        (b"\x7f", False),
    ],
)
async def test_values_that_headers_can_have(value: bytes, is_right: bool) -> None:
    mutation = pb.HeaderMutation(set=[pb.Header(key="a", value=value)])
    outcome = await guardrails.judge([OPEN], REQUEST, CALL, None, Said(passes(header_mutation=mutation)))
    assert outcome.headers == ({"a": value} if is_right else {})


THEIRS = ["host", "content-length", "connection", "transfer-encoding", "mcp-session-id", "mcp-protocol-version"]


@pytest.mark.parametrize("name", [*THEIRS, "mcp-method", "mcp-name"])
async def test_headers_of_the_connection_and_the_session_stay(name: str) -> None:
    for mutation in (
        pb.HeaderMutation(set=[pb.Header(key=name.title(), value=b"1")]),
        pb.HeaderMutation(remove=[name]),
    ):
        outcome = await guardrails.judge([CLOSED], REQUEST, CALL, None, Said(passes(header_mutation=mutation)))
        assert outcome == Outcome(CALL.content)


@pytest.mark.parametrize(("size", "is_kept"), [(65_536, True), (65_537, False)])
async def test_what_a_verdict_leaves_is_bounded(size: int, is_kept: bool) -> None:
    verdict = passes(metadata={"a": ""})
    verdict.metadata.update({"a": "x" * 60_000})
    verdict.metadata.update({"a": "x" * (60_000 + size - verdict.metadata.ByteSize())})
    assert verdict.metadata.ByteSize() == size
    outcome = await guardrails.judge([OPEN], REQUEST, CALL, None, Said(verdict))
    assert bool(outcome.metadata) is is_kept
    for length, has_data in ((65_536, True), (65_537, False)):
        error = b'"' + b"x" * (length - 2) + b'"'
        with pytest.raises(Rejected) as caught:
            await guardrails.judge([OPEN], REQUEST, CALL, None, Said(rejects(1, "r" * 1025, error)))
        assert (caught.value.data is not None) is has_data
        assert caught.value.text == "r" * 1024 and str(caught.value) == "open: " + "r" * 200


@pytest.mark.parametrize(
    ("value", "levels", "fits"),
    [
        *((1, 0, True), ([], 0, False), ([], 1, True), ({}, 0, False), ({"a": [1]}, 1, False), ({"a": [1]}, 2, True)),
        *(([1, [1]], 1, False), ([[1], 1], 1, False), ([1, [1]], 2, True)),
    ],
)
def test_levels_of_a_value(value: Any, levels: int, fits: bool) -> None:
    assert guardrails.has_levels(value, levels) is fits


def test_who_is_concerned() -> None:
    one, other = Processor("1", (("tools/call", REQUEST),)), Processor("2", (("*", RESPONSE),))
    assert guardrails.concerned((one, other), "tools/call", REQUEST) == (one,)
    assert guardrails.concerned((one, other), "tools/call", RESPONSE) == (other,)
    assert guardrails.concerned((one, other), "ping", REQUEST) == ()
