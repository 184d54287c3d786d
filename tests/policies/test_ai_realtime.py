"""Sessions of the realtime API of LLM providers, from the file to the messages of both ends."""

from __future__ import annotations

import json
import os

import pytest
from websockets.frames import Frame

from dataplane.http import websocket
from tests.carriers import Carrier, Request
from tests.fakes.h2_client import FrameClient, Said
from tests.fakes.h2_wire import data, headers
from tests.fakes.llm_toys import error, of_backend, text
from tests.fakes.memory_proxy import Http1Endpoints, MemoryProxy
from tests.fakes.realtime_talk import PATH, Event, Talk, config, created, done, piece

_FIELDS = {b":scheme": b"http", b":authority": b"a.example", b"sec-websocket-version": b"13"}
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
ASK = {"type": "response.create", "event_id": "e1"}


def item(said: str) -> Event:
    content = [{"type": "input_text", "text": said}]
    return {"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": content}}


# --- what passes, and what is known of it


def test_a_session_passes_and_its_responses_are_counted() -> None:
    talk = Talk()
    asked = [ASK, {"type": "input_audio_buffer.append", "audio": "AAAA"}]
    assert talk.ask(*asked) == asked
    events = [created(), piece("ho"), done(), created(2), piece("AAAA", 2, "output_audio"), done(2)]
    assert talk.say(*events) == events
    talk.leave()
    line = talk.line
    for field in ("usage.input_tokens=40", "usage.output_tokens=20", "usage.cache_read.input_tokens=16"):
        assert f"gen_ai.{field}" in line
    for field in ("operation.name=realtime", "request.model=gpt-realtime", "provider.name=custom"):
        assert f"gen_ai.{field}" in line
    assert " http.status=101 " in line and "reason" not in line
    assert talk.proxy.context.body_memory.used == 0


def test_each_response_counts_for_itself_in_the_metrics() -> None:
    talk = Talk()
    talk.say(created(), piece("a"), done(), created(2), piece("b", 2), done(2))
    metrics = talk.proxy.context.recorder.metrics
    slots = talk.proxy.context.recorder.slots
    for kind, tokens in (("input", 40), ("output", 20)):
        labels = ("realtime", "custom", "gpt-realtime", "", kind)
        at = metrics.labelled("gen_ai_client_token_usage", labels, ())
        assert slots[at + 17] == tokens
        assert sum(slots[at : at + 17]) == 2


def test_a_session_costs_what_its_responses_do_and_cached_audio_is_cached_input() -> None:
    prices = "{input: 1, output: 10, cacheRead: 0.5, inputAudio: 100, outputAudio: 1000}"
    talk = Talk(f"config: {{prices: {{models: {{gpt-realtime: {prices}}}}}}}\n" + config())
    talk.say(created(), done(), created(2), done(2))
    talk.leave()
    once = (20 - 8 - 9) * 1 + 8 * 0.5 + 9 * 100 + (10 - 6) * 10 + 6 * 1000
    assert f"llm.cost_usd={2 * once / 1e6:g}" in talk.line


def test_a_response_that_its_session_does_not_outlive_is_estimated() -> None:
    talk = Talk()
    talk.say(created(), done(), created(2), piece("four words are here", 2))
    talk.leave()
    assert "llm.usage_estimated=true" in talk.line
    assert "gen_ai.usage.input_tokens=50" in talk.line  # of the first 20, and the 30 that stand before the second


# --- the model


@pytest.mark.parametrize(
    ("policy", "path", "sent"),
    [
        ("", PATH, "model=gpt-realtime"),
        ("", "/v1/realtime?a=1&model=m&b=2", "a=1&b=2&model=m"),
        ("", "/v1/realtime?%6dodel=m%2Fx", "model=m%2Fx"),
        ("modelAliases: {fast: gpt-realtime-mini}", "/v1/realtime?model=fast", "model=gpt-realtime-mini"),
        ("overrides: [{field: model, value: other}]", PATH, "model=other"),
        ("defaults: [{field: model, value: usual}, {field: temperature, value: 1}]", "/v1/realtime", "model=usual"),
        ("transformations: [{field: model, expression: 'llmRequest.model + \"-x\"'}]", PATH, "model=gpt-realtime-x"),
        ("", "/v1/realtime?a=1%3Bb&model=m", "a=1%3Bb&model=m"),
    ],
)
def test_the_model_of_the_query_is_shaped(policy: str, path: str, sent: str) -> None:
    assert Talk(config(policy), path).request.split(b" ")[1] == f"/v1/realtime?{sent}".encode()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/v1/realtime", "model: must stand in the query"),
        ("/v1/realtime?model=", "model: must stand in the query"),
        ("/v1/realtime?model=a&model=b", "model: stands in the query more than once"),
        ("/v1/realtime?model=a&%6Dodel=b", "model: stands in the query more than once"),
        ("/v1/realtime?x=1;model=a&model=b", "model: stands in the query more than once"),
        ("/v1/realtime?model=a&Model=b", "model: stands in the query more than once"),
        ("/v1/realtime?%4Dodel=a", "model: is written as Model"),
        (f"/v1/realtime?model=a&b={'%61' * 1400}", "model: the query has more than 4,096 bytes"),
    ],
)
def test_a_query_that_readers_would_read_otherwise_is_refused(path: str, why: str) -> None:
    talk = Talk(path=path, opens=False)
    assert talk.answer.status_code == 400
    told = json.loads(talk.answer.body or b"")["error"]
    assert (told["message"], told["param"], told["code"]) == (why, "model", "LlmBadRequest")


ONLY = "authorization: {action: Allow, policy: {matchExpressions: ['llm.requestModel == \"gpt-realtime\"']}}"


def test_rules_say_who_may_use_which_model() -> None:
    talk = Talk(config(ONLY), "/v1/realtime?model=other", opens=False)
    assert talk.answer.status_code == 403
    assert json.loads(talk.answer.body or b"")["error"]["code"] == "LlmModelDenied"
    assert Talk(config(ONLY)).request


def update(model: str, transcribes: str = "") -> Event:
    beside = {"audio": {"input": {"transcription": {"model": transcribes}}}} if transcribes else {}
    return {"type": "session.update", "event_id": "u1", "session": {"type": "realtime", "model": model, **beside}}


def test_a_session_keeps_its_model_whatever_its_events_name() -> None:
    talk = Talk(config("modelAliases: {fast: real}"), "/v1/realtime?model=fast")
    (got,) = talk.ask(update("fast"))
    assert got["session"]["model"] == "real"
    assert talk.ask(update("real"))
    for event in (update("other"), {"type": "response.create", "event_id": "u1", "response": {"model": "other"}}):
        assert talk.ask(event) == []
        (told,) = talk.got()
        assert (told["type"], told["error"]["code"], told["error"]["event_id"]) == ("error", "LlmModelDenied", "u1")
    assert talk.ask(ASK) == [ASK]


def test_a_model_that_transcribes_needs_the_same_rights() -> None:
    talk = Talk(config(ONLY))
    assert talk.ask(update("gpt-realtime", "whisper-1")) == []
    (told,) = talk.got()
    assert told["error"]["param"] == "session.audio.input.transcription.model"
    assert Talk().ask(update("gpt-realtime", "whisper-1"))


def test_of_two_fields_by_one_name_the_one_that_was_looked_at_is_sent() -> None:
    talk = Talk(config(ONLY))
    (got,) = talk.ask('{"type":"session.update","session":{"model":"other","model":"gpt-realtime"}}')
    assert got == {"type": "session.update", "session": {"model": "gpt-realtime"}}
    assert b"other" not in talk.upstream.received


# --- the head


def backend(auth: str = "") -> str:
    return config() if not auth else config().replace("9001}}}", f"9001}}}}, policies: {{auth: {auth}}}}}")


def test_credentials_of_the_client_are_replaced() -> None:
    mine = "realtime, openai-insecure-api-key.sk-mine, openai-organization.me"
    headers = (("Authorization", "Bearer sk-mine"), ("Cookie", "c=1"), ("Origin", "http://a"))
    sent = Talk(backend("{key: sk-ours}"), headers=(*headers, ("Sec-WebSocket-Protocol", mine)), opens=False)
    asked = sent.proxy.upstream.take()
    assert b"sk-mine" not in asked and b"openai-organization" not in asked
    assert b"authorization: Bearer sk-ours\r\n" in asked
    assert b"sec-websocket-protocol: realtime\r\n" in asked
    assert b"cookie" not in asked.lower() and b"origin" not in asked.lower()


def test_a_caller_may_bring_a_key_where_the_backend_has_none() -> None:
    mine = (("Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.sk-mine"),)
    assert b"openai-insecure-api-key.sk-mine" in Talk(headers=mine, opens=False).proxy.upstream.take()


def test_extensions_are_not_offered_and_an_answer_with_one_is_refused() -> None:
    talk = Talk(extensions=True, opens=False)
    asked = talk.proxy.upstream.take()
    assert b"sec-websocket-extensions" not in asked.lower()
    key = asked.lower().partition(b"sec-websocket-key: ")[2].partition(b"\r\n")[0]
    assert key
    lines = b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-extensions: permessage-deflate\r\n"
    talk.proxy.upstream.answer(b"HTTP/1.1 101 Switching Protocols\r\n" + lines + b"\r\n")
    talk.got()


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_is_no_websocket_is_refused(method: str, carrier: Carrier) -> None:
    request = Request(method, PATH, body=b"" if method == "GET" else b"{}")
    seen = carrier.proxy(config()).carry(request)
    refused = {"GET": (426, "LlmNeedsWebSocket"), "POST": (405, "LlmMethodNotAllowed")}
    assert (seen.answer.status, error(seen.answer)["error"]["code"]) == refused[method]
    assert not seen.reached


def test_what_is_no_websocket_reads_what_it_should_be() -> None:
    client = MemoryProxy(config()).connect()
    client.send(b"GET %b HTTP/1.1\r\nhost: a\r\n\r\n" % PATH.encode())
    assert b"\r\nupgrade: websocket\r\n" in client.take()


def test_a_provider_without_the_api_is_named() -> None:
    talk = Talk(text("anthropic: {}, host: 127.0.0.1, port: 9001"), opens=False)
    assert talk.answer.status_code == 400
    assert b"does not speak Realtime; it speaks Messages" in (talk.answer.body or b"")


def test_a_refusal_of_the_provider_passes() -> None:
    talk = Talk(opens=False)
    talk.proxy.upstream.take()
    talk.proxy.upstream.answer(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\n{}")
    talk.got()
    assert (talk.client.handshake_exc is not None) or talk.client.events_received() is not None
    assert " http.status=401 " in talk.proxy.log_lines()[0]


# --- limits


LIMIT = "{rateLimit: {local: [{tokens: 50, unit: Minutes%s}]}}"


@pytest.mark.parametrize("key", ["", ", key: 'request.headers[\"x-user\"]'"])
def test_tokens_count_on_the_way_and_end_a_session_that_has_none_left(key: str) -> None:
    who = (("x-user", "ann"),)
    talk = Talk(config(policies=LIMIT % key), headers=who)
    talk.say(created(), done())
    assert talk.ask(ASK) == [ASK]  # 30 of 50
    talk.say(created(2), done(2))
    assert talk.ask(ASK) == []
    (told,) = talk.got()
    assert told["error"]["code"] == "RateLimited"
    assert "limit of 50 tokens per minute" in told["error"]["message"]
    assert talk.code == 1008
    other = Talk(headers=who, opens=False, proxy=talk.proxy)
    assert other.answer.status_code == 429
    talk.proxy.advance(12.1 + 1.2)  # 10 are owed, and one is wanted: what was counted is not counted again at the end
    talk.lose()
    assert Talk(headers=who, proxy=talk.proxy, opens=False).proxy.upstream.take()


def test_a_limit_of_requests_counts_sessions() -> None:
    limit = "{rateLimit: {local: [{requests: 2, unit: Hours}, {tokens: 1000, unit: Hours}]}}"
    talk = Talk(config(policies=limit))
    for _ in range(5):
        assert talk.ask(ASK) == [ASK]
    assert Talk(proxy=talk.proxy).ask(ASK) == [ASK]
    assert Talk(proxy=talk.proxy, opens=False).answer.status_code == 429
    assert talk.ask(ASK) == [ASK]


# --- bounds


def test_a_message_of_a_client_has_a_bound() -> None:
    talk = Talk(config().replace("    routes:", "    http: {maxBufferSize: 65536}\n    routes:", 1))
    large = {"type": "input_audio_buffer.append", "audio": "A" * 65_536}
    assert talk.ask(large) == []
    talk.got()
    assert talk.code == 1009
    assert talk.proxy.context.body_memory.used == 0


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"\x81\x02{}", 1002),  # not masked
        (b"\xc1\x82\0\0\0\0{}", 1002),  # a bit of an extension
        (b"\x83\x80\0\0\0\0", 1002),  # no opcode
        (b"\x80\x80\0\0\0\0", 1002),  # the part of nothing
        (b"\x01\x80\0\0\0\0\x81\x80\0\0\0\0", 1002),  # two at once
        (b"\x09\x80\0\0\0\0", 1002),  # half a ping
        (b"\x82\x80\0\0\0\0", 1003),  # binary
        (b"\x81\xff\x00\x00\x00\x00\x80\x00\x00\x00\0\0\0\0", 1009),  # 2 GiB are announced
    ],
)
def test_frames_that_are_none_end_the_session(sent: bytes, code: int) -> None:
    talk = Talk()
    talk.end.send(sent)
    talk.got()
    assert talk.code == code
    assert talk.proxy.context.body_memory.used == 0


def test_what_is_no_event_is_answered_and_not_sent() -> None:
    talk = Talk()
    assert talk.ask("[1]", "{", '"x"') == []
    assert [each["error"]["code"] for each in talk.got()] == ["LlmBadRequest"] * 3
    assert talk.ask(ASK) == [ASK]


def test_messages_in_parts_and_pings_between_them_pass() -> None:
    talk = Talk()
    talk.client.send_text(b'{"type":', fin=False)
    talk.client.send_ping(b"x")
    talk.client.send_continuation(b'"a"}', fin=True)
    assert talk.ask() == [{"type": "a"}]
    talk._from_server()
    talk._from_proxy()
    assert any(getattr(each, "data", None) == b"x" for each in talk.client.events_received())


def test_who_takes_no_more_stops_the_other_side() -> None:
    talk = Talk()
    talk.end.protocol.pause_writing()
    for _ in range(40):
        talk.say(piece(os.urandom(2_000).hex()))
    assert not talk.upstream.reading
    talk.end.protocol.resume_writing()
    assert talk.upstream.reading
    assert len(talk.got()) > 0


def test_who_reads_no_answers_to_what_is_no_event_is_asked_for_no_more() -> None:
    talk = Talk()
    talk.end.protocol.pause_writing()
    for _ in range(12):
        talk.ask(*["[]"] * 1_000)
    assert not talk.end.reading
    written = len(talk.end.take())
    assert written < 1_000
    talk.end.protocol.resume_writing()
    assert talk.end.reading
    assert talk.end.take().count(b"LlmBadRequest") == 12_000 - 1


@pytest.mark.parametrize(
    "event",
    [
        '{"type":"session.update","session":{"model":"costly"},"session":{}}',
        '{"type":"session.update","session":{"mo\\u0064el":"costly"},"session":{}}',
        '{"type":"response.create","model":"costly","model":"gpt-realtime"}',
    ],
)
def test_a_model_is_not_hidden_behind_a_second_field_by_its_name(event: str) -> None:
    talk = Talk()
    talk.client.send_text(event.encode())
    talk._to_proxy()
    talk.server.receive_data(talk.upstream.take())
    (sent,) = talk.server.events_received()
    assert isinstance(sent, Frame)
    assert json.loads(sent.data) == json.loads(event) and b"costly" not in sent.data


def test_a_session_in_which_nothing_moves_is_ended() -> None:
    talk = Talk()
    talk.proxy.advance(3_599)
    assert talk.ask(ASK) == [ASK]
    talk.proxy.advance(3_599)
    talk.got()
    assert talk.code is None
    talk.proxy.advance(2)
    talk.got()
    assert talk.code == 1001
    talk.proxy.advance(6)  # the client does not close
    assert not talk.end.open


# --- ends


def test_who_leaves_without_a_word_ends_both_sides() -> None:
    talk = Talk()
    talk.say(created(), done())
    talk.lose()
    assert not talk.upstream.open
    assert "gen_ai.usage.input_tokens=20" in talk.line


def test_a_provider_that_is_gone_ends_the_session_behind_what_it_has_said() -> None:
    talk = Talk()
    talk.server.send_text(json.dumps(done()).encode())
    talk.server.send_close(1000)
    talk._from_server()
    talk.lose_provider()
    assert talk.got() == [done()]
    assert talk.code == 1000
    assert "gen_ai.usage.input_tokens=20" in talk.line


# --- several providers


ONE, TWO = (
    f"name: {name}, custom: {{formats: [{{type: Realtime}}], model: {model}}}, host: 127.0.0.{number}, port: 9001"
    for number, (name, model) in enumerate((("one", "m1"), ("two", "m2")), 1)
)
GROUPS = f"groups: [{{providers: [{{{ONE}}}]}}, {{providers: [{{{TWO}, policies: {{auth: {{key: sk-two}}}}}}]}}]"


def test_the_next_provider_is_asked_where_the_first_does_not_open() -> None:
    talk = Talk(of_backend(GROUPS), headers=(("Authorization", "Bearer mine"),), opens=False)
    first = talk.proxy.upstream.take()
    assert b"model=m1" in first
    talk.proxy.upstream.answer(b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n")
    talk.open()
    assert b"model=m2" in talk.request and b"authorization: Bearer sk-two\r\n" in talk.request
    assert talk.ask(ASK) == [ASK]
    talk.say(created(), done())
    talk.leave()
    assert "llm.candidates=one:503:" in talk.line and "gen_ai.usage.input_tokens=20" in talk.line


# --- over HTTP/2


def test_a_session_over_http2_is_the_same() -> None:
    """An extended CONNECT (RFC 8441) opens it; the provider gets the upgrade of HTTP/1.1, with a key of its own."""
    proxy = Http1Endpoints(config())
    client = FrameClient(proxy)
    asked = {b":method": b"CONNECT", b":protocol": b"websocket", b":path": PATH.encode(), **_FIELDS}
    client.send(headers(1, tuple(asked.items()), end=False))
    sent = proxy.upstream.take()
    assert sent.startswith(b"GET /v1/realtime?model=gpt-realtime HTTP/1.1\r\n") and b"\r\nsec-websocket-key: " in sent
    proxy.upstream.answer(SWITCHED)
    assert client.take()[0] == Said("head", 1, 200)
    client.send(data(1, websocket.frame(websocket.TEXT, b'{"type":"response.create"}', True)))
    (message,) = websocket.Reader(True, 1 << 20).feed(proxy.upstream.take())
    assert message == (websocket.TEXT, b'{"type":"response.create"}')
    proxy.upstream.answer(websocket.frame(websocket.TEXT, json.dumps(done()).encode(), False))
    (said,) = client.take()
    assert said == Said("data", 1, websocket.frame(websocket.TEXT, json.dumps(done()).encode(), False))
    client.send(data(1, websocket.frame(websocket.BINARY, b"x", True)))
    assert websocket.close(1003, "events are text", False) in [each.value for each in client.take()]
    client.send(data(1, websocket.close(1003, "", True), end=True))
    assert "gen_ai.usage.input_tokens=20" in proxy.log_lines()[0]
