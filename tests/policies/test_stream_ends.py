"""Trailers that stages see and change, and answers that they give (`dataplane/streams`), over each carrier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dataplane.chain.buffering import buffering
from dataplane.chain.conditional import conditional
from dataplane.chain.filter import STEP, WHOLE, Env, Filter, Row
from dataplane.chain.reply import Reply
from dataplane.exchange import Exchange
from dataplane.filters.registry import ROWS
from dataplane.http.trailers import FORBIDDEN_TRAILERS, MAX_GIVEN
from tests.carriers import CARRIERS, Carrier, Request, Response, Run
from tests.fakes.policy_run import served
from tests.fakes.stages import INNER, Minding, Noting, both, proxy_with, upper

TOY = CARRIERS["toy"]
SUM = [("x-sum", "1")]
POST = Request("POST", body=[b"a", b"b"], trailers=SUM, sized=False)
ANSWER = Response(200, body=[b"c", b"d"], trailers=SUM, sized=False)
TEAPOT = Reply(418, "Teapot", b"short and stout", detail="it is one")


class Ending(Minding):
    """Passes content on, and gives an end of its own."""

    def __init__(self, end: Callable[[Any, bytes], None]) -> None:
        super().__init__(passes=True)
        self.end = end

    def content(self, data: bytes, end: bool) -> None:
        self.told.append((data, end))
        if not end or data:
            self.outlet.content(data, False)
        if end:
            self.end(self.outlet, b"")

    def trailers(self, lines: bytes) -> None:
        self.told.append(lines)
        self.end(self.outlet, lines)


def on_both(step: Callable[[], Any]) -> tuple[Any, Any, Filter]:
    out, back = step(), step()
    return out, back, Filter("test", request_stream=out, response_stream=back)


# --- trailers


def test_a_stage_is_given_trailers_behind_the_last_content(carrier: Carrier) -> None:
    out, back, step = on_both(lambda: Minding(passes=True))
    seen = proxy_with(carrier, header_modifiers=step).carry(POST, ANSWER)
    assert (seen.received.body, seen.received.trailers) == (b"ab", {"x-sum": "1"})
    assert (seen.answer.body, seen.answer.trailers) == (b"cd", {"x-sum": "1"})
    for stage, content in ((out, b"ab"), (back, b"cd")):
        assert stage.given == content and stage.told[-1] == b"x-sum: 1\r\n"
        assert not any(end for each in stage.told if isinstance(each, tuple) for _, end in [each])


CHANGED: dict[str, tuple[Callable[[Any, bytes], None], dict[str, str]]] = {
    "as they are": (lambda outlet, lines: outlet.trailers(lines), {"x-sum": "1"}),
    "others": (lambda outlet, lines: outlet.trailers(b"x-other: 2\r\n"), {"x-other": "2"}),
    "more": (lambda outlet, lines: outlet.trailers(lines + b"X-Other: 2\r\n"), {"x-sum": "1", "x-other": "2"}),
    "none": (lambda outlet, lines: outlet.trailers(b""), {}),
    "the end alone": (lambda outlet, lines: outlet.content(b"", True), {}),
}


@pytest.mark.parametrize("how", CHANGED)
def test_a_stage_changes_trailers(how: str, carrier: Carrier) -> None:
    end, passed = CHANGED[how]
    _, _, step = on_both(lambda: Ending(end))
    seen = proxy_with(carrier, header_modifiers=step).carry(POST, ANSWER)
    assert (seen.received.body, seen.received.trailers, seen.received.ended) == (b"ab", passed, True)
    assert (seen.answer.body, seen.answer.trailers, seen.answer.ended) == (b"cd", passed, True)


def test_a_stage_gives_trailers_where_none_came(carrier: Carrier) -> None:
    _, _, step = on_both(lambda: Ending(lambda outlet, lines: outlet.trailers(b"x-made: 1\r\n")))
    seen = proxy_with(carrier, header_modifiers=step).carry(
        Request("POST", body=[b"a", b"b"], sized=False), Response(200, body=[b"c"], sized=False)
    )
    assert (seen.received.body, seen.received.trailers) == (b"ab", {"x-made": "1"})
    assert (seen.answer.body, seen.answer.trailers) == (b"c", {"x-made": "1"})


def test_a_stage_may_wait_before_it_passes_trailers_on(carrier: Carrier) -> None:
    out, back, step = on_both(Minding)
    run = proxy_with(carrier, header_modifiers=step)
    asked = run.send(POST)
    assert out.told[-1] == b"x-sum: 1\r\n" and not run.arrival.received.ended
    out.outlet.content(b"AB", False)
    out.outlet.trailers(b"x-sum: 2\r\n")
    assert (run.arrival.received.body, run.arrival.received.trailers) == (b"AB", {"x-sum": "2"})
    run.arrival.answer(ANSWER)
    assert back.told[-1] == b"x-sum: 1\r\n" and not asked.answer.ended
    back.outlet.trailers(b"x-sum: 3\r\n")
    assert (asked.answer.trailers, asked.answer.ended) == ({"x-sum": "3"}, True)


def test_trailers_pass_stages_that_do_not_act_on_them(carrier: Carrier) -> None:
    """Behind the content that such a stage gives last."""
    inner = Minding(passes=True)
    outer = both(lambda data, end: data.upper() + (b"!" if end else b""))
    seen = proxy_with(carrier, csrf=outer, header_modifiers=Filter("test", request_stream=inner)).carry(POST, ANSWER)
    assert (inner.given, inner.told[-1]) == (b"AB!", b"x-sum: 1\r\n")
    assert (seen.received.body, seen.received.trailers) == (b"AB!", {"x-sum": "1"})
    assert (seen.answer.body, seen.answer.trailers) == (b"CD!", {"x-sum": "1"})


def test_a_stage_without_the_method_may_replace_trailers(carrier: Carrier) -> None:
    stage = Noting()
    run = proxy_with(carrier, header_modifiers=Filter("test", response_stream=stage))
    asked = run.send(Request())
    run.arrival.answer(ANSWER)
    stage.outlet.content(b"c", False)
    stage.outlet.trailers(b"x-other: 2\r\n")
    assert (asked.answer.body, asked.answer.trailers) == (b"c", {"x-other": "2"})


def test_trailers_that_came_before_their_stage(carrier: Carrier) -> None:
    """An outer step reads the body of the request, an inner one that of the response."""
    out, back, step = on_both(lambda: Minding(passes=True))
    reads = Filter("test", buffering(lambda x: None, 100), response=lambda x: None, response_body=WHOLE)
    other = Ending(lambda outlet, lines: outlet.trailers(lines + b"x-two: 2\r\n"))
    run = proxy_with(carrier, csrf=reads, buffer=step, header_modifiers=Filter("test", request_stream=other))
    seen = run.carry(POST, ANSWER)
    assert out.given == b"ab" and out.told[-1] == b"x-sum: 1\r\n" == back.told[-1]
    assert (seen.received.body, seen.received.trailers) == (b"ab", {"x-sum": "1", "x-two": "2"})
    assert (seen.answer.body, seen.answer.trailers) == (b"cd", {"x-sum": "1"})


@pytest.mark.parametrize("later", [False, True])
def test_trailers_of_a_response_that_a_step_outside_reads_whole(later: bool, carrier: Carrier) -> None:
    stage = Minding() if later else Ending(lambda outlet, lines: outlet.trailers(b"x-made: 1\r\n"))
    reads = Filter("test", response=lambda x: None, response_body=WHOLE)
    run = proxy_with(carrier, csrf=reads, header_modifiers=Filter("test", response_stream=stage))
    asked = run.send(Request())
    run.arrival.answer(ANSWER)
    if later:
        assert asked.answer.status is None
        stage.outlet.content(b"cd", False)
        stage.outlet.trailers(b"x-made: 1\r\n")
    assert (asked.answer.body, asked.answer.trailers, asked.answer.ended) == (b"cd", {"x-made": "1"}, True)


def test_a_step_outside_that_makes_another_body_drops_the_trailers_of_the_old_one(carrier: Carrier) -> None:
    def makes(x: Exchange) -> None:
        x.response_body, x.response_body_changed = b"new", True

    outer = Filter("test", response=makes, response_body=WHOLE)
    run = proxy_with(carrier, csrf=outer, header_modifiers=Filter("test", response_stream=Minding(passes=True)))
    seen = run.carry(Request(), ANSWER)
    assert (seen.answer.body, seen.answer.trailers) == (b"new", {})


def test_another_body_of_a_request_has_no_trailers(carrier: Carrier) -> None:
    inner = Filter("test", buffering(lambda x: x.replace_body(b"new"), 100))
    run = proxy_with(carrier, csrf=Filter("test", request_stream=Minding(passes=True)), header_modifiers=inner)
    seen = run.carry(POST)
    assert (seen.received.body, seen.received.trailers) == (b"new", {})


def test_a_body_that_is_too_large_for_a_step_goes_through_a_stage_in_its_order(carrier: Carrier) -> None:
    """It comes whole, with its end, in the piece that is too much."""
    outer = Filter("test", response=lambda x: None, response_body=10)
    run = proxy_with(carrier, csrf=outer, header_modifiers=both(upper))
    for body in (b"x" * 20, [b"x" * 5, b"x" * 15]):
        seen = run.carry(Request(), Response(200, body=body, trailers=SUM, sized=False))
        assert (seen.answer.body, seen.answer.trailers) == (b"X" * 20, {"x-sum": "1"})
        assert run.ask(Request(), Response(200, body=body, sized=False)).body == b"X" * 20


def test_a_stage_that_gives_trailers_early_ends_its_source(carrier: Carrier) -> None:
    out, back, step = on_both(Minding)
    outer, _, outside = on_both(lambda: Minding(passes=True))
    run = proxy_with(carrier, csrf=Filter("test", request_stream=outer), header_modifiers=step)
    asked = run.begin(POST)
    asked.content(b"a")
    out.outlet.trailers(b"x-enough: 1\r\n")
    assert (run.arrival.received.trailers, run.arrival.received.ended) == ({"x-enough": "1"}, True)
    assert outer.told[-1] == "cancel" and "cancel" not in out.told
    asked.content(b"for nobody")
    asked.end(SUM)
    run.arrival.head(Response(200))
    run.arrival.content(b"c")
    back.outlet.trailers(b"x-enough: 2\r\n")
    assert (asked.answer.trailers, asked.answer.ended) == ({"x-enough": "2"}, True)
    assert run.arrival.is_cancelled and outside is not None
    assert run.arrival.received.trailers == {"x-enough": "1"}


RETRIED = """
policies:
  headerModifiers: {request: {set: [{name: x-a, value: '1'}]}}
  retry: {attempts: 2, codes: [503], backoff: 1ms}
  requestMirror: {host: '127.0.0.2:9000'}
"""


@pytest.mark.parametrize("staged", [False, True])
def test_another_try_and_mirrors_get_the_trailers(staged: bool, carrier: Carrier) -> None:
    step = Filter("test", request_stream=Ending(lambda outlet, lines: outlet.trailers(lines + b"x-two: 2\r\n")))
    rows = tuple(Row(r.name, lambda *_: step, STEP, "test") if r.name == INNER and staged else r for r in ROWS)
    run = carrier.proxy(served(RETRIED), rows=rows)
    asked = run.send(Request("PUT", body=[b"so", b"me"], trailers=SUM, sized=False))
    tries = [each for each in run.arrivals if each.endpoint.address == "127.0.0.1"]
    tries[0].answer(Response(503))
    run.advance(1.0)
    run.serve()
    assert asked.answer.status == 200 and len(run.arrivals) == 3
    expected = {"x-sum": "1", "x-two": "2"} if staged else {"x-sum": "1"}
    for each in run.arrivals:
        assert (each.received.body, each.received.trailers, each.received.ended) == (b"some", expected, True)


# --- what must not pass


WRITES = {
    "headerModifiers": "headerModifiers: {request: {set: [{name: x-user, value: us}], remove: [x-admin]}}",
    "transformation": "transformation: {request: {set: [{name: x-user, value: '\"us\"'}], remove: [x-admin]}}",
    "without a value": "transformation: {request: {set: [{name: x-user, value: 'jwt.sub'}], remove: [x_admin]}}",
    "a credential": "apiKeyAuthentication: {mode: Permissive, location: {header: {name: x-user}}, "
    "secretRef: {ann: {value: k}}}, headerModifiers: {request: {remove: [X_Admin]}}",
    "conditional": "transformation: {conditional: [{policy: {request: {set: [{name: x-user, value: '\"us\"'}], "
    "remove: [x-admin]}}}]}",
}


@pytest.mark.parametrize("policy", WRITES)
def test_a_trailer_never_passes_for_a_header_that_a_policy_decides(policy: str, carrier: Carrier) -> None:
    """Whether the header is sent or was taken away (RFC 9110 6.5.1)."""
    run = carrier.shared(served(f"policies: {{{WRITES[policy]}}}"))
    trailers = [("x-user", "evil"), ("x-admin", "evil"), ("x-sent", "evil"), *SUM]
    seen = run.carry(
        Request("POST", headers=[("x-sent", "1")], body=[b"a", b"b"], trailers=trailers, sized=False),
    )
    assert (seen.received.body, seen.received.trailers) == (b"ab", {"x-sum": "1"})


def test_unusual_names_reach_no_stage(carrier: Carrier) -> None:
    stage = Minding(passes=True)
    run = proxy_with(carrier, header_modifiers=Filter("test", request_stream=stage))
    run.carry(Request("POST", body=[b"a"], trailers=[("x_user", "evil"), *SUM], sized=False))
    assert stage.told[-1].lower() == b"x-sum: 1\r\n"


def test_forbidden_names_reach_no_stage_and_leave_none(carrier: Carrier) -> None:
    """`connection` and its kind HTTP/2 forbids as fields at all; the toy has no codec that takes them out."""
    hop = {b"transfer-encoding", b"connection", b"upgrade", b"te", b"keep-alive"}
    names = sorted(name.decode() for name in FORBIDDEN_TRAILERS - hop)
    trailers = [*(() if carrier is TOY else ((name, "1") for name in names)), *SUM]
    lines = b"".join(b"%b: 1\r\n" % name for name in sorted(FORBIDDEN_TRAILERS)) + b"x-made: 1\r\n"
    out, back, step = on_both(lambda: Ending(lambda outlet, came: outlet.trailers(lines.title() + came)))
    seen = proxy_with(carrier, header_modifiers=step).carry(
        Request("POST", body=[b"a"], trailers=trailers, sized=False),
        Response(200, body=[b"b"], trailers=trailers, sized=False),
    )
    assert out.told[-1].lower() == back.told[-1].lower() == b"x-sum: 1\r\n"
    assert seen.received.trailers == seen.answer.trailers == {"x-made": "1", "x-sum": "1"}


BAD = {
    "no colon": b"x-a\r\n",
    "no end": b"x-a: 1",
    "an empty line": b"\r\n",
    "two ends": b"x-a: 1\r\n\r\nGET / HTTP/1.1\r\n",
    "a bare line feed": b"x-a: 1\nx-b: 2\r\n",
    "a pseudo-header": b":path: /\r\n",
    "white space": b"x-a : 1\r\n",
    "a folded line": b"x-a: 1\r\n b\r\n",
    "no text": b"x-a: \x00\r\n",
    "too many bytes": b"x-a: %b\r\n" % (b"a" * (MAX_GIVEN - 34)),
    "too many": b"x-a: 1\r\n" * (MAX_GIVEN // 36 + 1),
}


@pytest.mark.parametrize("what", BAD)
def test_lines_that_are_no_trailers_are_refused(what: str, carrier: Carrier) -> None:
    """The stage may give others then."""
    back = Minding()
    run = proxy_with(carrier, header_modifiers=Filter("test", response_stream=back))
    asked = run.send(Request())
    run.arrival.answer(ANSWER)
    with pytest.raises(ValueError, match="trailer"):
        back.outlet.trailers(BAD[what])
    assert not asked.answer.ended
    back.outlet.trailers(b"x-a: 1\r\n")
    assert (asked.answer.trailers, asked.answer.ended) == ({"x-a": "1"}, True)


def test_lines_that_are_no_trailers_end_a_request_with_500(carrier: Carrier) -> None:
    step = Filter("test", request_stream=Ending(lambda outlet, lines: outlet.trailers(b"x\r\n")))
    run = proxy_with(carrier, header_modifiers=step)
    asked = run.send(POST)
    assert asked.answer.status == 500 and run.arrival.is_cancelled and not run.arrival.received.ended


def test_as_many_trailers_as_a_stage_may_give(carrier: Carrier) -> None:
    """64 KB of them, and as many names."""
    lines = b"".join(b"x-%04d: 1\r\n" % number for number in range(MAX_GIVEN // 39))
    _, _, step = on_both(lambda: Ending(lambda outlet, came: outlet.trailers(lines)))
    many = proxy_with(carrier, header_modifiers=step)
    asked = many.send(Request())
    many.arrival.answer(Response(200, body=b"a"))
    names = len(asked.answer.trailers.pairs())
    assert asked.answer.ended and names == lines.count(b"\r\n") > 1_600
    _, _, step = on_both(lambda: Ending(lambda outlet, came: outlet.trailers(b"x-a: %b\r\n" % large)))
    large = b"a" * (MAX_GIVEN - 35)
    run = proxy_with(carrier, header_modifiers=step)
    asked = run.send(Request())
    run.arrival.answer(Response(200, body=b"a"))
    assert asked.answer.trailers == {"x-a": large.decode()}


@pytest.fixture(
    params=[each for each in CARRIERS.values() if each is not TOY], ids=[name for name in CARRIERS if name != "toy"]
)
def coded(request: pytest.FixtureRequest) -> Carrier:
    """Carriers with a codec."""
    made: Carrier = request.param
    return made


@pytest.mark.parametrize("staged", [False, True])
def test_more_trailers_than_a_client_may_send_end_its_request(staged: bool, coded: Carrier) -> None:
    """The limits are the codecs', whether a stage would see them or not."""
    stage = Minding(passes=True)
    step = Filter("test", request_stream=stage if staged else None, request=lambda x: None)
    run = proxy_with(coded, header_modifiers=step)
    many = [(f"x-{number}", "a" * 60) for number in range(3_000)]
    asked = run.send(Request("POST", body=[b"a"], trailers=many, sized=False))
    assert asked.answer.status == 431 or asked.answer.reset
    assert "HeadersTooLarge" in run.new_lines()[0]
    assert run.arrival.is_cancelled and not run.arrival.received.ended
    assert not staged or (stage.told[-1] == "cancel" and not any(isinstance(each, bytes) for each in stage.told))


# --- answers


def test_a_request_stage_answers_before_anything_went_upstream(carrier: Carrier) -> None:
    """The steps outside of it see the answer, its own and those inside do not."""
    seen_by: list[str] = []

    def notes(name: str) -> Callable[[Exchange], None]:
        return lambda x: seen_by.append(f"{name} {x.status} {x.reason}")

    stage = Minding()
    run = proxy_with(
        carrier,
        csrf=Filter("test", response=notes("outer"), response_stream=both(upper).response_stream),
        buffer=Filter("test", request_stream=stage, response=notes("own")),
        header_modifiers=Filter("test", buffering(lambda x: None, 100), response=notes("inner")),
    )
    asked = run.begin(Request("POST"))
    asked.content(b"a")
    stage.outlet.answer(TEAPOT)
    assert (asked.answer.status, asked.answer.body, asked.answer.ended) == (418, b"SHORT AND STOUT", True)
    assert seen_by == ["outer 418 Teapot"] and not run.arrivals and "cancel" not in stage.told
    (line,) = run.new_lines()
    assert "reason=Teapot" in line


@pytest.mark.parametrize("conditionally", [False, True])
@pytest.mark.parametrize("at_once", [False, True])
def test_a_request_stage_answers_while_the_request_is_on_its_way(
    at_once: bool, conditionally: bool, carrier: Carrier
) -> None:
    seen_by: list[str] = []
    stage = Ending(lambda outlet, lines: outlet.answer(TEAPOT))
    own = Filter("test", request_stream=stage, response=lambda x: seen_by.append("own"))
    outer = Filter("test", response=lambda x: seen_by.append("outer"))

    def build(env: Env) -> Filter:
        item = type("Item", (), {"condition": "true", "policy": None})()
        made = conditional("test", [item], env, lambda policy, env: own)
        assert made is not None
        return made

    run = proxy_with(carrier, csrf=outer, header_modifiers=build if conditionally else own)
    if at_once:  # the body is there before its stage is
        reads = Filter("test", buffering(lambda x: None, 100), response=lambda x: seen_by.append("outer"))
        run = proxy_with(carrier, csrf=reads, header_modifiers=build if conditionally else own)
        asked = run.send(Request("POST", body=b"ab"))
        assert not run.arrivals
    else:
        asked = run.begin(Request("POST"))
        asked.content(b"ab")
        assert run.arrival.received.body == b"ab"
        asked.end()
        assert run.arrival.is_cancelled and not run.arrival.received.ended
    assert (asked.answer.status, asked.answer.body, seen_by) == (418, TEAPOT.body, ["outer"])


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("later", [False, True])
def test_a_response_stage_answers_in_place_of_the_response(later: bool, whole: bool, carrier: Carrier) -> None:
    """At once, or while a step outside waits or reads the body; that step sees the answer."""
    seen_by: list[Any] = []
    waits: list[Any] = []

    def build(env: Env) -> Filter:
        async def wait(x: Exchange) -> None:
            seen_by.append((x.status, x.response_body))
            if later and x.status == 200:
                waits.append(env.make_future())
                await waits[-1]

        return Filter("test", response=wait, response_body=WHOLE if whole else 0)

    stage = Minding() if later else Ending(lambda outlet, lines: outlet.answer(TEAPOT))
    run = proxy_with(carrier, csrf=build, header_modifiers=Filter("test", response_stream=stage))
    asked = run.send(Request())
    run.arrival.head(Response(200, [("x-secret", "1")]))
    run.arrival.content(b"a")
    if later and not whole:
        assert asked.answer.status is None and seen_by == [(200, None)]
        stage.outlet.answer(TEAPOT)
        assert run.arrival.is_cancelled
    elif whole:
        run.arrival.end(SUM)
        if later:
            assert asked.answer.status is None
            stage.outlet.answer(TEAPOT)
    else:
        run.arrival.end()
        assert asked.answer.status == 200 and asked.answer.reset, "its head had left"
        return
    assert (asked.answer.status, asked.answer.body, asked.answer.ended) == (418, TEAPOT.body, True)
    assert seen_by[-1] == (418, TEAPOT.body) and "x-secret" not in asked.answer.headers
    assert "reason=Teapot" in run.new_lines()[0] and "cancel" not in stage.told


@pytest.mark.parametrize("direction", ["request", "response"])
def test_an_answer_after_the_head_has_left_breaks_off(direction: str, carrier: Carrier) -> None:
    out, back, step = on_both(lambda: Minding(passes=True))
    other = Noting(passes=True)
    run = proxy_with(carrier, csrf=Filter("test", response_stream=other), header_modifiers=step)
    asked = run.begin(Request("POST"))
    asked.content(b"a")
    run.arrival.head(Response(200))
    run.arrival.content(b"c")
    assert asked.answer.body == b"c"
    stage, rest = (out, back) if direction == "request" else (back, out)
    stage.outlet.answer(TEAPOT)
    assert (asked.answer.status, asked.answer.body, asked.answer.reset) == (200, b"c", True)
    assert run.arrival.is_cancelled and not run.arrival.received.ended
    assert rest.told[-1] == other.told[-1] == "cancel" and "cancel" not in stage.told
    (line,) = run.new_lines()
    assert "reason=Teapot" in line and "it is one" in line


@pytest.mark.parametrize("end", ["content", "trailers", "answer"])
@pytest.mark.parametrize("more", ["content", "trailers", "answer"])
def test_what_follows_an_end_is_refused(end: str, more: str, carrier: Carrier) -> None:
    gives: dict[str, Callable[[Any], None]] = {
        "content": lambda outlet: outlet.content(b"a", True),
        "trailers": lambda outlet: outlet.trailers(b"x-a: 1\r\n"),
        "answer": lambda outlet: outlet.answer(TEAPOT),
    }
    stage, outer = Minding(), Minding()
    run = proxy_with(
        carrier, csrf=Filter("test", response_stream=outer), header_modifiers=Filter("test", response_stream=stage)
    )
    asked = run.send(Request())
    run.arrival.head(Response(200))
    gives[end](stage.outlet)
    with pytest.raises(RuntimeError, match="after the end"):
        gives[more](stage.outlet)
    with pytest.raises(RuntimeError, match="after the end"):
        stage.outlet.content(b"more", False)
    if end == "answer":
        assert asked.answer.reset and outer.told[-1] == "cancel"
    else:
        outer.outlet.content(b"done", True)
        assert asked.answer.body == b"done"


@pytest.mark.parametrize("give", ["trailers", "answer"])
def test_a_hook_gives_no_end_before_its_stage_stands(give: str, carrier: Carrier) -> None:
    def hook(x: Exchange, outlet: Any) -> None:
        outlet.trailers(b"x-a: 1\r\n") if give == "trailers" else outlet.answer(TEAPOT)

    seen = proxy_with(carrier, header_modifiers=Filter("test", response_stream=hook)).carry(Request())
    assert (seen.answer.status, seen.reason) == (500, "InternalError")


def test_an_answer_when_the_exchange_is_over_is_for_nobody(carrier: Carrier) -> None:
    out, back, step = on_both(lambda: Minding(passes=True))
    run = proxy_with(carrier, header_modifiers=step)
    asked = run.begin(Request("POST"))
    asked.content(b"a")
    run.arrival.head(Response(200))
    asked.cancel()
    for each in (out, back):
        each.outlet.answer(TEAPOT)
    assert len(run.new_lines()) == 1


def test_an_answer_of_ours_has_no_trailers(carrier: Carrier) -> None:
    """A stage that gives them is no error."""
    outer = Filter("test", response_stream=Ending(lambda outlet, lines: outlet.trailers(b"x-a: 1\r\n")))
    run = proxy_with(carrier, csrf=outer, header_modifiers=Filter("test", request=lambda x: TEAPOT))
    seen = run.carry(Request())
    assert (seen.answer.status, seen.answer.body, seen.answer.trailers) == (418, TEAPOT.body, {})


def test_a_stage_answers_between_two_tries(carrier: Carrier) -> None:
    stage = Minding(passes=True)
    step = Filter("test", request_stream=stage)
    rows = tuple(Row(r.name, lambda *_: step, STEP, "test") if r.name == INNER else r for r in ROWS)
    run = carrier.proxy(served(RETRIED), rows=rows)
    asked = run.begin(Request("PUT"))
    asked.content(b"a")
    run.arrivals[0].answer(Response(503))
    stage.outlet.answer(TEAPOT)
    run.advance(2.0)
    assert asked.answer.status == 418 and all(not each.received.ended for each in run.arrivals)


# --- gRPC


CALL_HEADERS = [("content-type", "application/grpc"), ("te", "trailers")]
CALL = Request("POST", "/test.Echo/Say", CALL_HEADERS, [b"\0\0\0\0\1a"], sized=False)
STATUS = [("grpc-status", "0"), ("grpc-message", "fine")]


GRPC_ANSWER = Response(200, [("content-type", "application/grpc")], [b"\0\0\0\0\1b"], STATUS, sized=False)


def calls_with(carrier: Carrier, **steps: Filter) -> Run:
    return proxy_with(carrier, ", http: {version: HTTP1}" if carrier is TOY else "", **steps)


def test_a_stage_changes_the_status_of_a_call(carrier: Carrier) -> None:
    step = Filter("test", response_stream=Ending(lambda outlet, lines: outlet.trailers(b"grpc-status: 7\r\n")))
    seen = calls_with(carrier, header_modifiers=step).carry(CALL, GRPC_ANSWER)
    assert seen.answer.trailers == {"grpc-status": "7"} and "grpc.status=7" in seen.line


def test_a_call_keeps_its_trailers_behind_a_stage_and_a_step_that_reads_it(carrier: Carrier) -> None:
    outer = Filter("test", response=lambda x: None, response_body=WHOLE)
    seen = calls_with(carrier, csrf=outer, header_modifiers=both(upper)).carry(CALL, GRPC_ANSWER)
    assert seen.answer.trailers == dict(STATUS) and seen.answer.body == b"\0\0\0\0\1B"


def test_a_stage_answers_a_call_with_a_status_of_grpc(carrier: Carrier) -> None:
    stage = Minding()
    run = calls_with(carrier, header_modifiers=Filter("test", request_stream=stage))
    asked = run.send(CALL)
    stage.outlet.answer(Reply(403, "Denied", b"no"))
    answer = asked.answer
    assert (answer.status, answer.headers["grpc-status"], answer.headers["grpc-message"]) == (200, "7", "no")
