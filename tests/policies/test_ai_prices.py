"""What requests to LLM providers cost (docs/llm/prices.md): in expressions, log and metrics, by prices of the
configuration over the catalogue; a model without a price has no cost."""

from __future__ import annotations

import json
import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from dataplane.chain.calls import CallAnswer
from dataplane.http.heads import Head
from gatewright.wire.external.rate_limit_pb2 import RateLimitRequest, RateLimitResponse
from tests.carriers import Carrier, Response, Run
from tests.fakes.calls import FakeCalls
from tests.fakes.llm_toys import CHAT, CUSTOM, DONE, EVENTS, LAST, TOKEN, USAGE, as_json, chat, post, text
from tests.harness.yamls import load_all

EXAMPLE = Path(__file__).parents[2] / "examples/llm-keys"
PATH = "/v1/chat/completions"
STEPS = "{transformation: {response: {set: [{name: x-cost, value: 'string(llm.cost.total)'}]}}}"
GIVEN = (
    "{input: 3, output: '15.00', cacheRead: 0.30, cacheWrite: 5, reasoning: 20,"
    " tiers: {batch: {input: 1.5, output: 7.5}}}"
)

_OK = RateLimitResponse(overall_code=RateLimitResponse.OK).SerializeToString()
ALLOWED = CallAnswer(200, Head(b"\r\ngrpc-status: 0\r\n"), b"\0" + len(_OK).to_bytes(4, "big") + _OK)


def config(prices: str = f"models: {{own-model: {GIVEN}}}", policies: str = STEPS) -> str:
    return f"config: {{prices: {{{prices}}}}}\n" + text(policies=policies)


def answer(model: str = "own-model", tier: str = "", **usage: Any) -> Response:
    found = {"prompt_tokens": 1000, "completion_tokens": 100, **usage}
    return as_json({"model": model, "choices": [], "usage": found, **({"service_tier": tier} if tier else {})})


def cost(run: Run, response: Response, body: object = CHAT) -> str | None:
    return run.carry(post(PATH, body), response).answer.headers.get("x-cost")


def test_a_call_costs_what_its_tokens_do(carrier: Carrier) -> None:
    carried = carrier.proxy(config()).carry(post(PATH, CHAT), answer())
    assert carried.answer.headers["x-cost"] == "0.0045"  # 1000 x 3 + 100 x 15, of a million
    assert "llm.cost_usd=0.0045 " in carried.line


def test_cached_and_reasoning_tokens_and_tiers_are_priced_apart(carrier: Carrier) -> None:
    run = carrier.proxy(config())
    cached = {"prompt_tokens_details": {"cached_tokens": 600}}
    thought = {"completion_tokens_details": {"reasoning_tokens": 40}}
    assert cost(run, answer(**cached)) == "0.00288"  # 400 x 3 + 600 x 0.30 + 100 x 15
    assert cost(run, answer(**thought)) == "0.0047"  # 1000 x 3 + 60 x 15 + 40 x 20
    wrote = {"prompt_tokens_details": {"cache_write_tokens": 600}}
    assert cost(run, answer(**wrote)) == "0.0057"  # 400 x 3 + 600 x 5 + 100 x 15
    assert cost(run, answer(tier="batch")) == "0.00225"
    assert cost(run, answer(tier="default")) == "0.0045"


def test_the_catalogue_is_beneath_a_configurations_own_prices(carrier: Carrier) -> None:
    run = carrier.proxy(config("models: {gpt-4o-mini: {input: 1, output: 1}}"))
    assert cost(run, answer("gpt-4o")) == "0.0035"
    assert cost(run, answer("gpt-4o-mini")) == "0.0011"
    assert cost(run, answer("gpt-4o-2024-08-06")) == "0.0035"  # of a version, by the model's name
    assert cost(run, answer("gpt-4o-mini-2024-07-18")) == "0.0011"


def test_prices_of_a_provider_win(carrier: Carrier) -> None:
    run = carrier.proxy(config("models: {m: {input: 1, output: 1}, custom/m: {input: 2, output: 2}}"))
    assert cost(run, answer("m")) == "0.0022"


def test_a_model_without_a_price_has_no_cost_and_is_counted(carrier: Carrier) -> None:
    run = carrier.proxy(config())
    carried = run.carry(post(PATH, CHAT), answer("unheard-of"))
    assert carried.answer.headers.get("x-cost") is None
    assert "cost" not in carried.line
    recorder = run.memory.context.recorder
    assert recorder.slots[recorder.metrics.counter("llm_unpriced_requests_total", "custom", "unheard-of")] == 1


def test_the_provider_s_model_counts_where_the_answer_names_none(carrier: Carrier) -> None:
    aliased = text(CUSTOM, policy="modelAliases: {gpt: own-model}", policies=STEPS)
    run = carrier.proxy(f"config: {{prices: {{models: {{own-model: {GIVEN}}}}}}}\n" + aliased)
    assert cost(run, as_json({"usage": {"prompt_tokens": 1000, "completion_tokens": 100}})) == "0.0045"


def test_a_stream_costs_as_much(carrier: Carrier) -> None:
    run = carrier.proxy(config("models: {m: {input: 1000, output: 500}}"))
    body = {**CHAT, "stream": True}
    carried = run.carry(post(PATH, body), Response(headers=EVENTS, body=[TOKEN, LAST, USAGE, DONE]))
    assert "llm.cost_usd=0.011 " in carried.line  # 9 x 1000 + 4 x 500


def test_costs_add_up_in_the_metric(carrier: Carrier) -> None:
    run = carrier.proxy(config())
    for _ in range(3):
        run.carry(post(PATH, CHAT), answer())
    recorder = run.memory.context.recorder
    slot = recorder.metrics.labelled("llm_cost_usd_total", ("chat", "custom", "gpt", "own-model"), ())
    assert recorder.slots[slot] == 3 * 4_500_000


def test_a_provider_that_reports_nonsense_does_no_harm(carrier: Carrier) -> None:
    run = carrier.proxy(config("models: {m: {input: 999999999, output: 999999999}}"))
    for tokens in (2**53, 2**52, 2**53):
        carried = run.carry(post(PATH, CHAT), answer("m", prompt_tokens=tokens, completion_tokens=tokens))
        assert carried.answer.status == 200, carried


def test_prices_are_exchanged_while_the_proxy_runs(carrier: Carrier) -> None:
    run = carrier.proxy(config())
    assert cost(run, answer()) == "0.0045"
    run.load(config("models: {own-model: {input: 6, output: 30}}"))
    assert cost(run, answer()) == "0.009"
    run.load(text(policies=STEPS))
    assert cost(run, answer()) is None


def test_an_error_costs_nothing(carrier: Carrier) -> None:
    carried = chat(carrier, config=config(), answer=as_json({"error": {}}, 400))
    assert "cost" not in carried.line


@pytest.mark.parametrize(
    ("prices", "why"),
    [
        ("models: {m: {output: 1}}", "models.m.input"),
        ("models: {m: {input: -1}}", "must be a price"),
        ("models: {m: {input: 1e10}}", "must be a price"),
        ("models: {m: {input: cheap}}", "must be a price"),
        ("models: {m: {input: true}}", "must be a price"),
        ("models: {m: {input: .inf}}", "must be a price"),
        ("models: {m: {input: 1, cached: 1}}", "cached"),
        ("", "models or file must be set"),
    ],
)
def test_what_is_no_price_is_refused_by_name(prices: str, why: str, carrier: Carrier) -> None:
    with pytest.raises(Exception, match=re.escape(why)):
        carrier.proxy(config(prices))


def example() -> dict[str, Any]:
    """What examples/llm-keys has for a Gateway, as policies of a file with one of its keys."""
    (policy,) = load_all((EXAMPLE / "policy.yaml").read_text())
    limits = policy["spec"]["traffic"]["rateLimit"]["global"]
    (keys,) = load_all((EXAMPLE / "keys.yaml").read_text())
    return {
        "apiKeyAuthentication": {"secretRef": {"ann": {"value": keys["stringData"]["ann"]}}},
        "rateLimit": {"global": {"host": "127.0.0.1:9002"} | {k: v for k, v in limits.items() if k != "backendRef"}},
    }


@pytest.mark.parametrize(
    ("model", "micro_dollars"),
    [
        ("gpt-4o", 3500),  # of the catalogue: 1000 x 2.50 + 100 x 10
        ("own-model", 4500),  # of the configuration
        ("unheard-of", 210),  # of the example's expression: 1000 x 0.15 + 100 x 0.60
    ],
)
def test_what_a_call_costs_is_counted_in_the_budgets_of_its_key(
    model: str, micro_dollars: int, carrier: Carrier
) -> None:
    calls = FakeCalls(otherwise=ALLOWED)
    run = carrier.proxy(config(policies=json.dumps(example())), calls)
    carried = run.carry(post(PATH, CHAT, ("authorization", "Bearer sk-ann")), answer(model))
    assert carried.answer.status == 200
    asked = [RateLimitRequest.FromString(each.request.body[5:]).descriptors for each in calls.received]
    counted = [(each.limit.requests_per_unit, each.hits_addend.value) for each in chain.from_iterable(asked)]
    day, month = 1_500_000, 20_000_000
    assert counted == [(day, 0), (month, 0), (day, micro_dollars), (month, micro_dollars)]
