"""`backend.ai`: what policies make of bodies, who may use which model, and which policy counts."""

from __future__ import annotations

from tests.carriers import Carrier
from tests.fakes.llm_toys import (
    CHAT,
    CHATTED,
    GROUPS,
    ONLY,
    as_json,
    chat,
    error,
    of_backend,
    post,
    sent,
    text,
)

# --- bodies

SHAPED = (
    "defaults: [{field: temperature, value: 0.5}, {field: unknown, value: ours}],"
    " overrides: [{field: user, value: ours}, {field: metadata, value: ours}],"
    " transformations: [{field: metadata, expression: '{\"was\": llmRequest.model}'}],"
    " modelAliases: {gpt: gpt-4o}, prompt: {prepend: [{role: SYSTEM, content: be kind}],"
    " append: [{role: USER, content: and brief}]}"
)


def test_policies_shape_the_body_and_nothing_else_of_it(carrier: Carrier) -> None:
    body = {**CHAT, "user": "me", "unknown": {"a": [1]}}
    assert sent(chat(carrier, body, text(policy=SHAPED))) == {
        "model": "gpt-4o",
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "hi"},
            {"role": "user", "content": "and brief"},
        ],
        "user": "ours",
        "unknown": {"a": [1]},
        "temperature": 0.5,
        "metadata": {"was": "gpt"},
    }


def test_the_model_of_a_provider_takes_the_place_of_the_requests(carrier: Carrier) -> None:
    assert sent(chat(carrier, config=text("openai: {model: own}, host: 127.0.0.1, port: 9001")))["model"] == "own"


# --- who may use which model


def test_a_model_that_rules_refuse_is_answered_with_403(carrier: Carrier) -> None:
    config = text(policy=ONLY)
    assert chat(carrier, config=config).answer.status == 200
    carried = chat(carrier, {**CHAT, "model": "o1"}, config)
    assert (carried.answer.status, carried.reached) == (403, ())
    assert error(carried.answer)["error"]["type"] == "permission_error"


# --- levels


def test_policies_of_a_provider_win_over_those_of_the_route(carrier: Carrier) -> None:
    own = ", policies: {ai: {modelAliases: {m1: own}, routes: {'*': Completions}}}"
    run = carrier.proxy(of_backend(GROUPS % (own, ""), "modelAliases: {m1: routes}"))
    assert sent(run.carry(post("/anything", CHAT), as_json(CHATTED)))["model"] == "own"


def test_rules_of_all_levels_add_up(carrier: Carrier) -> None:
    deny = "authorization: {action: Deny, policy: {matchExpressions: ['llm.requestModel == \"no\"']}}"
    own = f", policies: {{ai: {{{deny}}}}}"
    run = carrier.proxy(of_backend(GROUPS % (own, ""), ONLY))
    path = "/v1/chat/completions"
    assert run.carry(post(path, {**CHAT, "model": "gpt"}), as_json(CHATTED)).answer.status == 200
    assert run.carry(post(path, {**CHAT, "model": "no"})).answer.status == 403
    assert run.carry(post(path, {**CHAT, "model": "other"})).answer.status == 403
