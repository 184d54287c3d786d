"""Servers that guards ask: what each gets, what its answer means, and what happens when none can be used."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from dataplane.chain.calls import CallAnswer, CallFailed
from dataplane.guards.judging import Judge
from dataplane.guards.plan import Guard, Guards, Rejected
from dataplane.guards.servers import asking
from dataplane.guards.servers.bedrock import Bedrock
from dataplane.guards.servers.contract import Server
from dataplane.guards.servers.model_armor import ModelArmor
from dataplane.guards.servers.moderation import Moderation
from dataplane.guards.servers.webhook import Webhook
from dataplane.guards.values import Action, Phase, Text
from tests.fakes.calls import FakeCalls, answered, failed

TEXTS = (Text("one"), Text("two", role="system"))
KEY = "backend/guard"


def servers(fails_open: bool = False) -> dict[str, Server]:
    return {
        "moderation": Moderation(KEY, fails_open, "omni"),
        "bedrock": Bedrock(KEY, fails_open, "id/1", "DRAFT"),
        "armor": ModelArmor(KEY, fails_open, "p", "europe-west4", "t"),
        "webhook": Webhook(KEY, fails_open),
    }


def said(value: Any) -> CallAnswer:
    return answered(200, json.dumps(value).encode())


PASS: dict[str, Any] = {
    "moderation": {"results": [{"flagged": False}, {"flagged": False}]},
    "bedrock": {"action": "NONE", "outputs": [], "assessments": []},
    "armor": {"sanitizationResult": {"filterMatchState": "NO_MATCH_FOUND", "invocationResult": "SUCCESS"}},
    "webhook": {"action": {"reason": "fine"}},
}
REJECT: dict[str, list[Any]] = {
    "moderation": [{"results": [{"flagged": False}, {"flagged": True}]}],
    "bedrock": [
        {
            "action": "GUARDRAIL_INTERVENED",
            "outputs": [{"text": "Sorry"}],
            "assessments": [{"topicPolicy": {"topics": [{"name": "t", "type": "DENY", "action": "BLOCKED"}]}}],
        },
        {
            "action": "GUARDRAIL_INTERVENED",
            "outputs": [{"text": "one"}, {"text": "{NAME}"}],
            "assessments": [
                {
                    "sensitiveInformationPolicy": {
                        "piiEntities": [{"type": "NAME", "match": "x", "action": "ANONYMIZED"}]
                    }
                },
                {"contentPolicy": {"filters": [{"type": "HATE", "confidence": "HIGH", "action": "BLOCKED"}]}},
            ],
        },
        {
            "action": "GUARDRAIL_INTERVENED",
            "outputs": [{"text": "only one"}],
            "assessments": [{"a": {"action": "ANONYMIZED"}}],
        },
        {"action": "GUARDRAIL_INTERVENED", "outputs": [{"text": "one"}, {"text": "two"}], "assessments": []},
    ],
    "armor": [
        {"sanitizationResult": {"filterMatchState": "MATCH_FOUND", "filterResults": {}}},
        {
            "sanitizationResult": {
                "filterMatchState": "NO_MATCH_FOUND",
                "filterResults": {"sdp": {"sdpFilterResult": {"inspectResult": {"matchState": "MATCH_FOUND"}}}},
            }
        },
        {"sanitizationResult": {"filterResults": [{"raiFilterResult": {"matchState": "MATCH_FOUND"}}]}},
    ],
    "webhook": [{"action": {"body": "no", "status_code": 451, "reason": "r"}}],
}
UNREADABLE: dict[str, list[Any]] = {
    "moderation": [{}, {"results": []}, {"results": [{"flagged": False}]}, {"results": [{"flagged": "no"}, {}]}, []],
    "bedrock": [{}, {"action": "WHAT"}, {"action": "GUARDRAIL_INTERVENED"}, {"action": 1}],
    "armor": [
        {},
        {"sanitizationResult": {}},
        {"sanitizationResult": {"filterMatchState": "X"}},
        {"sanitizationResult": {"filterMatchState": "NO_MATCH_FOUND", "invocationResult": "PARTIAL"}},
    ],
    "webhook": [
        *({}, {"action": None}, {"action": {"body": 1}}, {"action": {"body": "x"}}, {"action": {"status_code": 403}}),
        *({"action": {"body": "x", "status_code": 99}}, {"action": {"body": {"messages": []}}}),
        {"action": {"body": {"messages": [{"content": 1}, {"content": "x"}]}}},
    ],
}
REFUSED = [answered(500), answered(401), answered(302), answered(200, b"\xff"), answered(200, b"[" * 100_000)]
NOBODY = [failed(cause) for cause in ("unresolved", "connect", "timeout", "lost", "invalid", "unfinished")]


class Asked:
    def __init__(self, outcome: CallAnswer | CallFailed, server: Server, phase: Phase = Phase.REQUEST) -> None:
        self.calls = FakeCalls({KEY: outcome})
        self.counted: Counter[Action] = Counter()
        guard = Guard("request[0].test", "message", 409, server=server)
        headers = ((b"X-Tenant", b"acme"), (b"authorization", b"secret"), (b"content-type", b"text/html"))

        async def ask(guard: Guard, phase: Phase, texts: Any) -> Any:
            return await asking.ask(self.calls, None, headers, self.count, guard, phase, texts)

        guards = Guards((guard,), (guard,))
        self.work = Judge(guards, phase, ask, self.count).texts(TEXTS)

    def count(self, guard: Guard, phase: Phase, action: Action) -> None:
        self.counted[action] += 1

    def run(self) -> list[str]:
        """Fake calls answer at once."""
        try:
            self.work.send(None)
        except StopIteration as end:
            found: list[str] = end.value
            return found
        raise AssertionError("it waits")


@pytest.mark.parametrize("name", PASS)
def test_what_passes_stays_as_it_is(name: str) -> None:
    asked = Asked(said(PASS[name]), servers()[name])
    assert asked.run() == ["one", "two"]
    assert asked.counted == {Action.ALLOW: 1}


@pytest.mark.parametrize(("name", "answer"), [(name, each) for name in REJECT for each in REJECT[name]])
def test_what_is_rejected(name: str, answer: Any) -> None:
    asked = Asked(said(answer), servers(True)[name])
    with pytest.raises(Rejected) as rejected:
        asked.run()
    assert not rejected.value.is_unavailable
    own = ("no", 451) if name == "webhook" else ("message", 409)
    assert (rejected.value.message, rejected.value.status) == own
    assert asked.counted == {Action.REJECT: 1}


UNUSABLE = [(name, said(each)) for name in UNREADABLE for each in UNREADABLE[name]]
UNUSABLE += [(name, each) for name in PASS for each in (*REFUSED, *NOBODY)]  # type: ignore[misc]


@pytest.mark.parametrize(("name", "outcome"), UNUSABLE)
def test_a_server_that_cannot_be_asked_rejects_unless_it_fails_open(name: str, outcome: Any) -> None:
    closed = Asked(outcome, servers()[name])
    with pytest.raises(Rejected) as rejected:
        closed.run()
    assert rejected.value.is_unavailable and (rejected.value.message, rejected.value.status) == ("message", 409)
    assert closed.counted == {Action.UNAVAILABLE: 1}
    opened = Asked(outcome, servers(True)[name])
    assert opened.run() == ["one", "two"]
    assert opened.counted == {Action.FAIL_OPEN: 1}


BLAMES = [answered(400), answered(413), answered(414), answered(422), answered(431), failed("too_large")]


@pytest.mark.parametrize("fails_open", [False, True])
@pytest.mark.parametrize("outcome", BLAMES)
@pytest.mark.parametrize("name", PASS)
def test_a_server_that_does_not_take_a_text_rejects_in_both_modes(name: str, outcome: Any, fails_open: bool) -> None:
    asked = Asked(outcome, servers(fails_open)[name])
    with pytest.raises(Rejected) as rejected:
        asked.run()
    assert rejected.value.is_unavailable and asked.counted == {Action.UNAVAILABLE: 1}


MASKS = {
    "bedrock": {
        "action": "GUARDRAIL_INTERVENED",
        "outputs": [{"text": "one"}, {"text": "{NAME}"}],
        "assessments": [
            {"sensitiveInformationPolicy": {"piiEntities": [{"type": "NAME", "match": "two", "action": "ANONYMIZED"}]}}
        ],
    },
    "webhook": {"action": {"body": {"messages": [{"role": "user", "content": "one"}, {"content": "{NAME}"}]}}},
}


@pytest.mark.parametrize("name", MASKS)
def test_what_is_masked(name: str) -> None:
    asked = Asked(said(MASKS[name]), servers()[name])
    assert asked.run() == ["one", "{NAME}"]
    assert asked.counted == {Action.MASK: 1}


def test_a_webhook_masks_answers() -> None:
    choices = [{"message": {"role": "assistant", "content": each}} for each in ("1", "2")]
    assert Asked(said({"action": {"body": {"choices": choices}}}), servers()["webhook"], Phase.RESPONSE).run() == [
        "1",
        "2",
    ]


@pytest.mark.parametrize(
    ("name", "phase", "target", "body"),
    [
        ("moderation", Phase.REQUEST, "/v1/moderations", {"input": ["one", "two"], "model": "omni"}),
        (
            "webhook",
            Phase.REQUEST,
            "/request",
            {"body": {"messages": [{"role": "user", "content": "one"}, {"role": "system", "content": "two"}]}},
        ),
        (
            "webhook",
            Phase.RESPONSE,
            "/response",
            {
                "body": {
                    "choices": [{"message": {"role": r, "content": t}} for r, t in (("user", "one"), ("system", "two"))]
                }
            },
        ),
        (
            "armor",
            Phase.REQUEST,
            "/v1/projects/p/locations/europe-west4/templates/t:sanitizeUserPrompt",
            {"userPromptData": {"text": "one\ntwo"}},
        ),
        (
            "armor",
            Phase.RESPONSE,
            "/v1/projects/p/locations/europe-west4/templates/t:sanitizeModelResponse",
            {"modelResponseData": {"text": "one\ntwo"}},
        ),
    ],
)
def test_what_a_server_is_asked(name: str, phase: Phase, target: str, body: Any) -> None:
    asked = Asked(said(PASS[name]), servers()[name], phase)
    asked.run()
    (received,) = asked.calls.received
    assert (received.request.method, received.request.target.decode()) == (b"POST", target)
    assert json.loads(received.request.body) == body
    assert b"secret" not in received.request.headers and b"acme" not in received.request.headers


@pytest.mark.parametrize(("phase", "source"), [(Phase.REQUEST, "INPUT"), (Phase.RESPONSE, "OUTPUT")])
def test_bedrock_is_asked_by_source(phase: Phase, source: str) -> None:
    asked = Asked(said(PASS["bedrock"]), servers()["bedrock"], phase)
    asked.run()
    request = asked.calls.last
    assert request.target == b"/guardrail/id%2F1/version/DRAFT/apply"
    body = json.loads(request.body)
    assert body == {"source": source, "content": [{"text": {"text": "one"}}, {"text": {"text": "two"}}]}


def test_a_webhook_gets_the_headers_that_it_asks_for() -> None:
    matches = ((b"x-tenant", b"acme".__eq__), (b"content-type", lambda value: True), (b"authorization", b"x".__eq__))
    asked = Asked(said(PASS["webhook"]), Webhook(KEY, False, matches))
    asked.run()
    headers = asked.calls.last.headers
    assert b"X-Tenant: acme\r\n" in headers
    assert headers.count(b"content-type") == 1 and b"secret" not in headers


def test_no_text_is_in_what_is_said_of_a_failure() -> None:
    for name in PASS:
        asked = Asked(answered(200, b'{"one": "two"'), servers()[name])
        with pytest.raises(Rejected) as rejected:
            asked.run()
        assert "one" not in rejected.value.detail and "two" not in rejected.value.detail
