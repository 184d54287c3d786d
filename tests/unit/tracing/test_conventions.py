"""Names of attributes are those of OpenTelemetry's published conventions, or have the namespace of this product."""

from __future__ import annotations

import importlib
import json
from functools import cache
from pathlib import Path

import opentelemetry.semconv
import pytest

from dataplane.telemetry.connections import ConnectionRecord, attributes_of
from dataplane.telemetry.log_field import NO_ATTRIBUTE
from dataplane.telemetry.log_fields import FIELDS
from tests.fakes.llm_toys import CHAT, CHATTED, GROUPS, of_backend
from tests.fakes.memory_proxy import MemoryProxy
from tests.policies.test_tracing import ALWAYS, BUSY, OK, asked, file, spans

OWN = "gatewright."


@cache
def published() -> frozenset[str]:
    """All names that the package knows, stable or not."""
    root = Path(opentelemetry.semconv.__file__).parent
    names: set[str] = set()
    for path in root.rglob("attributes/*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[-1] != "__init__":
            module = importlib.import_module(f"opentelemetry.semconv.{'.'.join(parts)}")
            names |= {value for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}
    assert "http.request.method" in names and "gen_ai.request.model" in names and len(names) > 500
    return frozenset(names)


def strange(names: set[str]) -> set[str]:
    return {name for name in names if not name.startswith(OWN)} - published()


def test_of_fields() -> None:
    assert strange({field.otlp_name for field in FIELDS} - {NO_ATTRIBUTE}) == set()


def test_of_connections() -> None:
    record = ConnectionRecord("tcp", "192.0.2.1", 1.0, server_name="a.test", endpoint="127.0.0.1:1", reason="Idle")
    assert strange({name for name, _ in attributes_of(record, 1.0)}) == set()


AUTH = "        extAuthz: {host: '127.0.0.1:9000', protocol: {grpc: {}}}"
RETRY = "        retry: {attempts: 2, codes: [503]}"


def of(proxy: MemoryProxy) -> set[str]:
    return {name for span in spans(proxy) for name, _ in span.attributes}


@pytest.mark.parametrize("answers", [(OK,), (BUSY, OK), (b"SSH-2.0-x\r\n",)])
def test_of_spans(answers: tuple[bytes, ...]) -> None:
    found = of(asked(file(ALWAYS, policies=RETRY), *answers))
    assert {"http.request.method", "server.address", "gatewright.backend"} <= found
    assert strange(found) == set()


@pytest.mark.parametrize("is_well", [True, False])
def test_of_candidates_of_a_model(is_well: bool) -> None:
    """A provider that is asked is a span, which says which model and how many tokens."""
    tracing = "frontendPolicies:\n  tracing: {host: '127.0.0.1:4317', randomSampling: 'true'}\n"
    proxy = MemoryProxy(tracing + of_backend(GROUPS % ("", "")).lstrip("\n"))
    body = json.dumps(CHAT).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a.test\r\ncontent-type: application/json\r\n"
    proxy.connect().send(head + b"content-length: %d\r\n\r\n" % len(body) + body)
    sent = proxy.upstream.received
    answer = json.dumps(CHATTED).encode()
    lines = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    well = lines % len(answer) + answer
    proxy.upstream.answer(well if is_well else BUSY)
    if not is_well:
        proxy.connector.upstreams[-1].answer(well)  # the next provider is asked
    candidate = next(span for span in spans(proxy) if span.name == "chat gpt")
    found = dict(candidate.attributes)
    assert found["gatewright.backend"].endswith("/one") and found["gen_ai.provider.name"] == "openai"
    assert f"-{candidate.context.span_id}-01".encode() in sent
    if is_well:
        assert found["gen_ai.response.model"] == "gpt-2024" and candidate.failure == ""
        assert (found["gen_ai.usage.input_tokens"], found["gen_ai.usage.output_tokens"]) == (9, 4)
    else:
        assert (candidate.failure, found["http.response.status_code"]) == ("503", 503)
    assert strange(of(proxy)) == set()
