"""W3C Trace Context in and out; OpenTelemetry's SDK is the second opinion on both contexts and sampling."""

from __future__ import annotations

import random

import pytest
from opentelemetry.sdk.trace.sampling import Decision, ParentBased, TraceIdRatioBased
from opentelemetry.trace import get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.trace.span import NonRecordingSpan, TraceFlags
from opentelemetry.trace.span import SpanContext as OracleContext

from dataplane.tracing import sampling
from dataplane.tracing.context import SpanContext, parsed, root

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{SPAN}-01".encode()


@pytest.mark.parametrize(
    ("parent", "flags"),
    [
        (GOOD, 1),
        (b" " + GOOD + b"\t", 1),
        (f"00-{TRACE}-{SPAN}-00".encode(), 0),
        (f"00-{TRACE}-{SPAN}-03".encode(), 3),
        (f"00-{TRACE}-{SPAN}-ff".encode(), 3),
        (f"01-{TRACE}-{SPAN}-01".encode(), 1),
        (f"cc-{TRACE}-{SPAN}-01-what-comes-later".encode(), 1),
    ],
)
def test_a_traceparent_that_is_allowed(parent: bytes, flags: int) -> None:
    assert parsed([parent], []) == SpanContext(TRACE, SPAN, flags)


@pytest.mark.parametrize(
    "parents",
    [
        [],
        [b""],
        [GOOD, GOOD],
        [GOOD + b","],
        [GOOD + b"-more"],
        [GOOD.upper()],
        [GOOD[:-1]],
        [b"ff" + GOOD[2:]],
        [b"0x" + GOOD[2:]],
        [b"01" + GOOD[2:] + b"."],
        [f"00-{'0' * 32}-{SPAN}-01".encode()],
        [f"00-{TRACE}-{'0' * 16}-01".encode()],
        [f"00-{TRACE}-{SPAN}-0g".encode()],
        [f"00-{TRACE[:-1]}-{SPAN}-01".encode()],
        [f"00_{TRACE}_{SPAN}_01".encode()],
        [b"\xff" * 55],
    ],
)
def test_anything_else_is_no_trace(parents: list[bytes]) -> None:
    assert parsed(parents, [b"a=1"]) is None


@pytest.mark.parametrize(
    ("states", "sent"),
    [
        ([], b""),
        ([b"congo=t61rcWkgMzE"], b"congo=t61rcWkgMzE"),
        ([b"a=1", b"b=2"], b"a=1,b=2"),
        ([b"a=1 , \tb=2,,"], b"a=1,b=2"),
        ([b"fw529a3039@dt=FfbA;x"], b"fw529a3039@dt=FfbA;x"),
        ([b"0a=1"], b"0a=1"),
        ([b"a=1,a=2"], b""),
        ([b"A=1"], b""),
        ([b"a= "], b""),
        ([b"a=1=2"], b""),
        ([b"a"], b""),
        ([b"a=\x00"], b""),
        ([b"a=" + b"x" * 257], b""),
        ([",".join(f"k{n}=v" for n in range(32)).encode()], ",".join(f"k{n}=v" for n in range(32)).encode()),
        ([",".join(f"k{n}=v" for n in range(33)).encode()], b""),
        ([b"a=1"] * 3000, b""),
    ],
)
def test_a_tracestate_passes_or_is_dropped_alone(states: list[bytes], sent: bytes) -> None:
    context = parsed([GOOD], states)
    assert context == SpanContext(TRACE, SPAN, 1, sent)


def test_lines_of_a_child() -> None:
    context = SpanContext(TRACE, SPAN, 1, b"a=1")
    assert context.child("00f067aa0ba902b7", True).header_lines() == (
        f"traceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\ntracestate: a=1\r\n".encode()
    )
    assert (
        context.child("00f067aa0ba902b7", False)
        .header_lines()
        .startswith(f"traceparent: 00-{TRACE}-00f067aa0ba902b7-00\r\n".encode())
    )


def test_identifiers_are_never_all_zero() -> None:
    assert root(0, 0) == SpanContext("0" * 31 + "1", "0" * 15 + "1", 1)
    assert parsed([root(0, 0).header_lines()[len(b"traceparent: ") : -2]], []) == root(0, 0)


def test_a_thousand_parents_are_read_and_sampled_as_the_sdk_does() -> None:
    chance = random.Random(20261128)
    agreed = {True: 0, False: 0}
    for _ in range(1000):
        share = chance.choice([0.0, 0.01, 0.25, 0.5, 0.99, 1.0])
        line = f"00-{chance.getrandbits(128):032x}-{chance.getrandbits(64):016x}-{chance.choice(('00', '01', '03'))}"
        ours, theirs = parsed([line.encode()], [b"a=1"]), _oracle(line)
        assert ours is not None
        assert (int(ours.trace_id, 16), int(ours.span_id, 16)) == (theirs.trace_id, theirs.span_id)
        sampler = ParentBased(root=TraceIdRatioBased(0.0), remote_parent_sampled=TraceIdRatioBased(share))
        parent = set_span_in_context(NonRecordingSpan(theirs))
        expected = sampler.should_sample(parent, theirs.trace_id, "GET").decision == Decision.RECORD_AND_SAMPLE
        assert sampling.continues(ours, sampling.bound(share)) == expected
        agreed[expected] += 1
    assert min(agreed.values()) > 200


def test_the_share_of_new_traces_is_that_of_the_sdk() -> None:
    chance = random.Random(28112026)
    for _ in range(1000):
        share, trace = chance.random(), chance.getrandbits(128) or 1
        expected = TraceIdRatioBased(share).should_sample(None, trace, "GET").decision == Decision.RECORD_AND_SAMPLE
        assert sampling.is_among(trace, sampling.bound(share)) == expected


@pytest.mark.parametrize("share", [False, 0, 0.0, -1, float("nan"), "1", None, b"", [1]])
def test_what_is_no_share_samples_nothing(share: object) -> None:
    assert sampling.bound(share) == 0


@pytest.mark.parametrize("share", [True, 1, 1.0, 7, float("inf")])
def test_all(share: object) -> None:
    assert sampling.is_among(2**128 - 1, sampling.bound(share))


def _oracle(line: str) -> OracleContext:
    context = TraceContextTextMapPropagator().extract({"traceparent": line, "tracestate": "a=1"})
    found = get_current_span(context).get_span_context()
    assert found.is_valid
    assert TraceFlags(found.trace_flags) is not None
    return found
