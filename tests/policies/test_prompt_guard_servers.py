"""`backend.ai.promptGuard` with servers that decide: a webhook over the network, in both phases, on streams too."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from gatewright.api.standalone.standalone import load
from gatewright.wire.v1 import traffic_pb2
from tests.carriers import Carried, Carrier, Response
from tests.carriers.values import Received
from tests.fakes.llm_toys import CHAT, CHATTED, DONE, EVENTS, as_json, error, post, text

HOOK = "{webhook: {host: '127.0.0.1:9005'%s}}"
Decide = Callable[[list[str]], Any]


def guarded(request: str = "", response: str = "", more: str = "") -> str:
    lists = (f"request: [{request}]" if request else "", f"response: [{response}]" if response else "", more)
    return text(policy=f"promptGuard: {{{', '.join(filter(None, lists))}}}")


class World:
    """Providers, and a webhook that is asked by the same network."""

    def __init__(self, decide: Decide, answer: Response) -> None:
        self.asked: list[list[str]] = []
        self.headers: list[Any] = []
        self._decide, self._answer = decide, answer

    def __call__(self, received: Received) -> Response:
        if received.target not in ("/request", "/response"):
            return self._answer
        body = json.loads(received.body)["body"]
        messages = body["messages"] if received.target == "/request" else [each["message"] for each in body["choices"]]
        self.asked.append([each["content"] for each in messages])
        self.headers.append(received.headers)
        found = self._decide(self.asked[-1])
        return found if isinstance(found, Response) else as_json({"action": found})


def carried(
    carrier: Carrier, config: str, decide: Decide, answer: Response, *headers: tuple[str, str]
) -> tuple[Carried, World]:
    world = World(decide, answer)
    return carrier.proxy(config).carry(post("/v1/chat/completions", {**CHAT, "stream": True}, *headers), world), world


def passes(_: list[str]) -> Any:
    return {"reason": "fine"}


def test_a_webhook_sees_the_texts_of_a_request_and_masks_them(carrier: Carrier) -> None:
    found, world = carried(
        carrier,
        guarded(HOOK % ", forwardHeaderMatches: [{name: x-tenant, value: acme}]"),
        lambda texts: {"body": {"messages": [{"role": "user", "content": each.upper()} for each in texts]}},
        as_json(CHATTED),
        ("x-tenant", "acme"),
        ("x-other", "secret"),
    )
    assert world.asked == [["hi"]]
    assert world.headers[0]["x-tenant"] == "acme" and world.headers[0].get("x-other") is None
    (sent,) = [each for each in found.reached if each.target == "/v1/chat/completions"]
    assert json.loads(sent.body)["messages"][0]["content"] == "HI"
    assert found.answer.status == 200


def test_a_webhook_that_rejects_has_its_own_answer(carrier: Carrier) -> None:
    found, _ = carried(
        carrier, guarded(HOOK % ""), lambda _: {"body": "not here", "status_code": 451}, as_json(CHATTED)
    )
    assert found.answer.status == 451 and error(found.answer)["error"]["message"] == "not here"
    assert error(found.answer)["error"]["code"] == "PromptRejected"
    assert [each.target for each in found.reached] == ["/request"]


@pytest.mark.parametrize(("mode", "status"), [("", 403), (", failureMode: FailOpen", 200)])
@pytest.mark.parametrize("bad", [Response(500), Response(200, body=b"garbage"), as_json({"action": 1})], ids=str)
def test_a_webhook_that_cannot_be_asked(mode: str, status: int, bad: Response, carrier: Carrier) -> None:
    found, _ = carried(carrier, guarded(HOOK % mode), lambda _: bad, as_json(CHATTED))
    assert found.answer.status == status
    if status == 403:
        assert error(found.answer)["error"]["code"] == "GuardUnavailable"


def streamed(*pieces: str) -> Response:
    made = [
        b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": each}}]}).encode() + b"\n\n"
        for each in pieces
    ]
    made.append(b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n')
    made.append(b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}\n\n')
    return Response(headers=EVENTS, body=[*made, DONE])


def said(body: bytes) -> str:
    lines = [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: {")]
    events = [json.loads(line) for line in lines]
    return "".join(each["choices"][0]["delta"].get("content", "") for each in events if each.get("choices"))


def test_windows_of_a_stream_are_judged_with_overlap(carrier: Carrier) -> None:
    pieces = [f"{number:03} " for number in range(60)]
    found, world = carried(carrier, guarded("", HOOK % "", "holdBack: 64"), passes, streamed(*pieces))
    assert said(found.answer.body) == "".join(pieces)
    assert found.answer.body.endswith(DONE)
    shown = [texts[0] for texts in world.asked if texts != [""]]
    assert len(shown) > 2 and all(len(each) <= 64 + 16 for each in shown)
    assert all(after.startswith(before[-16:]) for before, after in pairwise(shown))


def test_nothing_of_a_rejected_window_reaches_the_client(carrier: Carrier) -> None:
    pieces = ["fine words " * 8, "a secret plan ", "more " * 40]

    def decide(texts: list[str]) -> Any:
        return {"body": "no", "status_code": 409} if "secret" in texts[0] else {}

    found, _ = carried(carrier, guarded("", HOOK % "", "holdBack: 64"), decide, streamed(*pieces))
    assert found.answer.status == 200
    assert b"secret" not in found.answer.body and b"plan" not in found.answer.body
    last = found.answer.body.rstrip().rpartition(b"data: ")[2]
    assert json.loads(last)["error"]["message"] == "no" and json.loads(last)["error"]["code"] == "AnswerRejected"
    assert b"[DONE]" not in found.answer.body


def test_a_rejection_before_anything_was_sent_has_its_status(carrier: Carrier) -> None:
    found, _ = carried(
        carrier, guarded("", HOOK % ""), lambda _: {"body": "no", "status_code": 409}, streamed("a secret")
    )
    assert found.answer.status == 409 and error(found.answer)["error"]["message"] == "no"


def test_a_webhook_masks_windows(carrier: Carrier) -> None:
    def decide(texts: list[str]) -> Any:
        return {"body": {"choices": [{"message": {"content": each.replace("secret", "******")}} for each in texts]}}

    found, _ = carried(carrier, guarded("", HOOK % ""), decide, streamed("a sec", "ret ", "b"))
    assert said(found.answer.body) == "a ****** b"


@pytest.mark.parametrize(("location", "region"), [("", "us-central1"), ("location: europe-west4, ", "europe-west4")])
def test_backends_that_guards_bring_have_their_address_and_policies(location: str, region: str) -> None:
    guards = (
        "request: [{openAIModeration: {model: omni, policies: {auth: {key: sk-own}}}},"
        " {bedrockGuardrails: {identifier: i, version: '1', region: eu-west-1}}],"
        " response: [{googleModelArmor: {templateId: t, projectId: p, "
        + location
        + "policies: {http: {requestTimeout: 3s}}}}]"
    )
    loaded = load(guarded(more=guards), "gw.yaml")
    assert loaded.problems == ()
    found = {
        each.key.rpartition("-")[2]: each.backend
        for each in loaded.resources
        if "promptGuard" in each.key and each.HasField("backend")
    }
    hosts = {name: (each.static.host, each.static.port, each.static.app_protocol) for name, each in found.items()}
    assert hosts == {
        "openAIModeration": ("api.openai.com", 443, "https"),
        "bedrockGuardrails": ("bedrock-runtime.eu-west-1.amazonaws.com", 443, "https"),
        "googleModelArmor": (f"modelarmor.{region}.rep.googleapis.com", 443, "https"),
    }
    policies = {name: {each.WhichOneof("field"): each for each in backend.policies} for name, backend in found.items()}
    assert policies["bedrockGuardrails"]["backend_auth"].backend_auth.HasField("aws")
    assert policies["googleModelArmor"]["backend_auth"].backend_auth.HasField("gcp")
    assert policies["googleModelArmor"]["backend_http"].backend_http.request_timeout_ms == 3000
    secret = policies["openAIModeration"]["backend_auth"].backend_auth.secret
    assert [each.key for each in loaded.resources if each.HasField("secret")] == [secret]


SETTINGS: dict[str, tuple[str, dict[str, str]]] = {
    "openAIModeration": ("model: omni", {"model": "omni"}),
    "bedrockGuardrails": (
        "identifier: i, version: '2', region: eu-west-1",
        {"identifier": "i", "version": "2"},
    ),
    "googleModelArmor": (
        "templateId: t, projectId: p",
        {"template_id": "t", "project_id": "p", "location": "us-central1"},
    ),
}


@pytest.mark.parametrize(
    ("name", "side"),
    [(name, side) for name in SETTINGS for side in ("request", "response")[: 1 if name == "openAIModeration" else 2]],
)
@pytest.mark.parametrize(
    ("mode", "told"),
    [("", "CLOSED"), (", failureMode: FailClosed", "CLOSED"), (", failureMode: FailOpen", "OPEN")],
)
def test_what_guards_of_providers_say_reaches_proxies(name: str, mode: str, told: str, side: str) -> None:
    """Of which each server is asked: `unit/guards/test_guard_servers.py`."""
    written, expected = SETTINGS[name]
    own = f"{name}: {{{written}{mode}, policies: {{http: {{requestTimeout: 7s}}}}}}"
    guard = f"{{{own}, response: {{message: 'no', statusCode: 418}}}}"
    loaded = load(guarded(**{side: guard}), "gw.yaml")
    assert loaded.problems == ()
    (route,) = [each.route for each in loaded.resources if each.HasField("route")]
    (policy,) = [each.backend_ai for each in route.policies if each.HasField("backend_ai")]
    (sent,) = getattr(policy.prompt_guard, side)
    server: Any = getattr(sent, sent.WhichOneof("kind"))
    found = {field.name: value for field, value in server.ListFields()}
    key, mode_sent = found.pop("backend"), found.pop("failure_mode")
    assert (found, sent.response.message, sent.response.status_code) == (expected, "no", 418)
    assert traffic_pb2.FailureMode.Name(mode_sent) == f"FAILURE_MODE_FAIL_{told}"
    (backend,) = [each.backend for each in loaded.resources if each.key == key]
    assert 7000 in [each.backend_http.request_timeout_ms for each in backend.policies]


def _no_secrets(texts: list[str]) -> Any:
    return {"body": "no", "status_code": 409} if "secret" in texts[0] else {}


def test_usage_after_a_rejection_inside_a_stream_counts(carrier: Carrier) -> None:
    pieces = ["fine words " * 8, "a secret plan ", "more " * 40]
    found, _ = carried(carrier, guarded("", HOOK % "", "holdBack: 64"), _no_secrets, streamed(*pieces))
    assert found.answer.status == 200 and b"AnswerRejected" in found.answer.body
    assert b"more" not in found.answer.body
    assert "gen_ai.usage.input_tokens=9" in found.line and "gen_ai.usage.output_tokens=4" in found.line


@pytest.mark.parametrize("mode", ["FailClosed", "FailOpen"])
def test_a_header_that_is_too_long_for_a_pattern_opens_nothing(mode: str, carrier: Carrier) -> None:
    """The webhook cannot be asked about it, and a client could have that at will: it rejects in both modes."""
    pattern = "{name: x-tenant, type: RegularExpression, value: 'a.{0,100}b.{0,100}c'}"
    config = guarded(HOOK % f", forwardHeaderMatches: [{pattern}], failureMode: {mode}")
    short, world = carried(carrier, config, passes, as_json(CHATTED), ("x-tenant", "aabc"))
    assert short.answer.status == 200 and len(world.asked) == 1
    long, world = carried(carrier, config, passes, as_json(CHATTED), ("x-tenant", "a" * 7000))
    assert (long.answer.status, len(world.asked)) == (403, 0)
