"""`frontend.metrics`: labels of the metrics about requests, from YAML to the page for Prometheus."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dataplane.agent import exposition
from dataplane.telemetry.measures import MOST_SETS
from tests.fakes.memory_proxy import MemoryProxy

FILE = """
frontendPolicies:
  metrics:
    attributes:
      add: {add}
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: all
      backends: [{{host: "127.0.0.1:9000"}}]
      policies: {policies}
"""
TENANT = "[{name: tenant, expression: 'request.headers[\"x-tenant\"]'}]"
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
PLACE = {"gateway": "default/standalone", "listener": "http"}


def asked(proxy: MemoryProxy, *tenants: str, answer: bytes = OK) -> str:
    """The metrics after a request of each of these."""
    client = proxy.connect()
    for tenant in tenants:
        line = f"x-tenant: {tenant}\r\n" if tenant else ""
        client.send(f"GET /a HTTP/1.1\r\nHost: a.test\r\n{line}\r\n".encode())
        proxy.upstream.answer(answer)
    return exposition.render([proxy.metrics.series]).decode()


def value(page: str, name: str, **labels: str) -> float | None:
    """Of one series."""
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            if sample.name == f"gatewright_{name}" and sample.labels == labels:
                return sample.value
    return None


def proxy_with(add: str, policies: str = "{}") -> MemoryProxy:
    return MemoryProxy(FILE.format(add=add, policies=policies))


def test_metrics_about_requests_have_the_labels() -> None:
    page = asked(proxy_with(TENANT), "blue", "red", "blue")
    outcome = PLACE | {"method": "GET", "status": "200", "reason": "Upstream"}
    assert value(page, "requests_total", **outcome, tenant="blue") == 2
    assert value(page, "requests_total", **outcome, tenant="red") == 1
    assert value(page, "requests_total", **outcome) is None
    assert value(page, "response_bytes_total", **PLACE, tenant="blue") == 4
    assert value(page, "request_duration_seconds_count", **PLACE, tenant="red") == 1


def test_a_label_that_fails_is_unknown() -> None:
    page = asked(proxy_with(TENANT), "")
    assert value(page, "request_duration_seconds_count", **PLACE, tenant="unknown") == 1


def test_values_of_the_end_are_there() -> None:
    is_get = "{name: is_get, expression: 'request.method == \"GET\"'}"
    add = f"[{{name: code.class, expression: 'response.code / 100'}}, {is_get}]"
    page = asked(proxy_with(add), "blue")
    assert value(page, "request_duration_seconds_count", **PLACE, code_class="2", is_get="true") == 1


def test_what_is_counted_before_the_end_has_them_too() -> None:
    proxy = proxy_with(TENANT, "{retry: {attempts: 1, codes: [503]}}")
    client = proxy.connect()
    client.send(b"GET /a HTTP/1.1\r\nHost: a.test\r\nx-tenant: blue\r\n\r\n")
    proxy.upstream.answer(b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n")
    proxy.advance(1.0)
    proxy.upstream.answer(OK)
    page = exposition.render([proxy.metrics.series]).decode()
    assert value(page, "retried_requests_total", outcome="success", tenant="blue") == 1


def test_values_that_clients_make_up_are_bounded_and_counted() -> None:
    proxy, more = proxy_with(TENANT), 40
    page = asked(proxy, *(f"t{number}" for number in range(MOST_SETS + more)))
    assert value(page, "request_duration_seconds_count", **PLACE, tenant="t0") == 1
    assert value(page, "request_duration_seconds_count", **PLACE, tenant="overflow") == more
    assert value(page, "metric_labels_overflowed_total", gateway="default/standalone") == more
    total = sum(
        float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith("gatewright_requests_t")
    )
    assert total == MOST_SETS + more


def test_a_gateway_without_labels_has_none_that_overflow() -> None:
    proxy = proxy_with(TENANT)
    asked(proxy, *(f"t{number}" for number in range(MOST_SETS)))
    labels = FILE[FILE.index("    attributes:") : FILE.index("binds:")]
    proxy.load(FILE.replace(labels, '    otlp: {{host: "127.0.0.1:4317"}}\n').format(policies="{}"))
    page = asked(proxy, "another")
    assert value(page, "metric_labels_overflowed_total", gateway="default/standalone") is None
    assert value(page, "request_duration_seconds_count", **PLACE) == 1


def test_a_value_cannot_forge_another_label() -> None:
    text = '\'"a\\" \\nb\\x1fc=d\\\\\\u2028" + request.headers["x-tenant"]\''
    page = asked(proxy_with(f"[{{name: tenant, expression: {text}}}]"), '",listener="other' * 20)
    found = [
        sample.labels
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == "gatewright_request_duration_seconds_count"
    ]
    (labels,) = found
    assert labels.keys() == {"gateway", "listener", "tenant"} and labels["listener"] == "http"
    assert labels["tenant"].startswith('a" \nb c=d\\\u2028",listener="other') and len(labels["tenant"]) < 128


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("status", 'metrics have a label "status" already'),
        ("gen-ai.token.type", 'metrics have a label "gen_ai_token_type" already'),
        ("le", 'metrics have a label "le" already'),
        ("9a", "cannot be the name of a label"),
        ("__a", "cannot be the name of a label"),
        ("a b", "cannot be the name of a label"),
    ],
)
def test_names_that_cannot_be_are_refused(name: str, why: str) -> None:
    with pytest.raises(AssertionError, match=why):
        proxy_with(f"[{{name: {name!r}, expression: '\"1\"'}}]")


def test_two_names_that_are_one_label_are_refused() -> None:
    with pytest.raises(AssertionError, match=r'"a-b" is the same label as "a\.b"'):
        proxy_with("[{name: a.b, expression: '\"1\"'}, {name: a-b, expression: '\"1\"'}]")


def test_a_policy_that_goes_takes_its_labels_along() -> None:
    proxy = proxy_with(TENANT)
    asked(proxy, "blue")
    proxy.load(FILE.format(add=TENANT, policies="{}").replace("attributes:\n      add: " + TENANT, "{}"))
    page = asked(proxy, "blue")
    assert value(page, "request_duration_seconds_count", **PLACE) == 1
    assert value(page, "request_duration_seconds_count", **PLACE, tenant="blue") == 1


def test_a_request_that_is_traced_is_an_exemplar() -> None:
    text = FILE.format(add=TENANT, policies="{}").replace(
        "frontendPolicies:", "frontendPolicies:\n  tracing: {host: '127.0.0.1:4317', randomSampling: 'true'}"
    )
    proxy = MemoryProxy(text)
    asked(proxy, "blue")
    (record,) = proxy.exported
    page = exposition.render([proxy.metrics.series], is_open=True).decode()
    found = [line for line in page.splitlines() if "_bucket" in line and " # {" in line]
    trace = record.spans[0].context.trace_id
    assert len(found) == 1 and f'# {{trace_id="{trace}"}}' in found[0] and page.endswith("# EOF\n")


def test_decisions_of_policies_are_counted_by_reason() -> None:
    denied = "{authorization: {action: Deny, policy: {matchExpressions: ['request.path == \"/a\"']}}}"
    page = asked_alone(proxy_with(TENANT, denied), b"GET /a HTTP/1.1\r\nHost: a.test\r\nx-tenant: blue\r\n\r\n")
    decision = {"policy": "authorization", "reason": "AuthorizationDenied"}
    assert value(page, "policy_decisions_total", gateway="default/standalone", **decision, tenant="blue") == 1


def test_an_answer_of_a_policy_is_a_decision_too_and_one_of_a_backend_is_none() -> None:
    direct = "{directResponse: {status: 200, body: hello}}"
    page = asked_alone(proxy_with(TENANT, direct), b"GET /a HTTP/1.1\r\nHost: a.test\r\n\r\n")
    (line,) = [each for each in page.splitlines() if each.startswith("gatewright_policy_decisions_total{")]
    assert 'policy="direct_response"' in line
    assert "gatewright_policy_decisions_total{" not in asked(proxy_with(TENANT), "blue")


def test_calls_are_counted_by_target_and_outcome() -> None:
    proxy = proxy_with(TENANT, "{extAuthz: {host: '127.0.0.1:9000', protocol: {http: {}}}}")
    client = proxy.connect()
    for answer in (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b"HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n"):
        client.send(b"GET /a HTTP/1.1\r\nHost: a.test\r\n\r\n")
        proxy.upstream.answer(answer)
        if b"200" in answer:
            proxy.upstream.answer(OK)
    page = exposition.render([proxy.metrics.series]).decode()
    calls = {
        sample.labels["outcome"]: sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == "gatewright_calls_total"
    }
    assert calls == {"2xx": 1, "4xx": 1}
    assert page.count("gatewright_call_duration_seconds_count{") == 1


def asked_alone(proxy: MemoryProxy, request: bytes) -> str:
    """The metrics after a request that no backend gets."""
    proxy.connect().send(request)
    return exposition.render([proxy.metrics.series]).decode()
