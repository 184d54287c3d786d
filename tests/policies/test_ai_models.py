"""Lists of models with those of providers (`backend.ai.listProviderModels`): asked once, kept, and never with what is a
client's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.carriers import Carrier, Request, Response
from tests.carriers.contract import Arrival
from tests.carriers.run import Run
from tests.fakes.llm_toys import ONLY, as_json, of_backend, text

ASKS = "listProviderModels: true"
OPENAI = "openai: {}, host: 127.0.0.1, port: 9001"
PATH = "/v1/models"
CUSTOM = "custom: {formats: [{type: Completions, path: /a/chat/completions}]}"


def listing(*names: str) -> Response:
    data = [{"id": name, "object": "model", "created": 7, "owned_by": "them"} for name in names]
    return as_json({"object": "list", "data": data})


def ask(run: Run, *headers: tuple[str, str]) -> Any:
    return run.client().send(Request("GET", PATH, headers=headers))


def names(asked: Any) -> list[str]:
    assert asked.answer.status == 200
    return [each["id"] for each in json.loads(asked.answer.body)["data"]]


def arrived(run: Run, number: int) -> Arrival:
    assert len(run.arrivals) == number
    return run.arrival


def test_a_provider_s_list_is_part_of_ours(carrier: Carrier) -> None:
    run = carrier.proxy(text(OPENAI, f"{ASKS}, modelAliases: {{fast: gpt-1}}"))
    asked = ask(run)
    arrival = arrived(run, 1)
    assert (arrival.received.method, arrival.received.target) == ("GET", PATH)
    arrival.answer(listing("gpt-1", "gpt-2", "fast"))
    assert names(asked) == ["fast", "gpt-1", "gpt-2"]
    assert json.loads(asked.answer.body)["data"][1] == {
        "id": "gpt-1",
        "object": "model",
        "created": 7,
        "owned_by": "openai",
    }


def test_it_is_asked_once_for_all_who_wait_and_counts_for_five_minutes(carrier: Carrier) -> None:
    run = carrier.proxy(text(OPENAI, ASKS))
    first, second = ask(run), ask(run)
    arrived(run, 1).answer(listing("one"))
    assert names(first) == names(second) == ["one"]
    run.advance(299)
    assert names(ask(run)) == ["one"]
    arrived(run, 1)


def test_an_old_one_is_asked_for_behind_the_back_of_who_reads_it(carrier: Carrier) -> None:
    run = carrier.proxy(text(OPENAI, ASKS))
    ask(run)
    arrived(run, 1).answer(listing("one"))
    run.advance(301)
    assert names(ask(run)) == ["one"]
    arrived(run, 2).answer(listing("two"))
    assert names(ask(run)) == ["two"]


@pytest.mark.parametrize(
    "answer",
    [
        Response(500, body=b"no"),
        Response(body=b"no"),
        Response(body=b"[" * 100_000),
        as_json({"data": [{"id": 7}]}),
        Response(body=b" " * 1_048_577),
    ],
)
def test_one_that_cannot_be_had_keeps_nobody_waiting_again(answer: Response, carrier: Carrier) -> None:
    run = carrier.proxy(text(OPENAI, f"{ASKS}, modelAliases: {{fast: gpt-1}}"))
    asked = ask(run)
    arrived(run, 1).answer(answer)
    assert names(asked) == ["fast"]
    assert names(ask(run)) == ["fast"]
    arrived(run, 1)
    run.advance(31)
    assert names(ask(run)) == ["fast"]
    arrived(run, 2).answer(listing("gpt-1"))
    assert names(ask(run)) == ["fast", "gpt-1"]


def test_while_asking_fails_the_last_list_counts_for_an_hour(carrier: Carrier) -> None:
    run = carrier.proxy(text(OPENAI, ASKS))
    ask(run)
    arrived(run, 1).answer(listing("one"))
    run.advance(3_000)
    assert names(ask(run)) == ["one"]
    arrived(run, 2).answer(Response(500))
    run.advance(599)
    assert names(ask(run)) == ["one"]
    arrived(run, 3).answer(Response(500))
    run.advance(31)
    assert names(ask(run)) == []


def test_a_provider_that_does_not_answer_is_waited_for_five_seconds(carrier: Carrier) -> None:
    run = carrier.proxy(text(OPENAI, f"{ASKS}, modelAliases: {{fast: gpt-1}}"))
    asked = ask(run)
    run.advance(4)
    assert not asked.answer.status
    run.advance(2)
    assert names(asked) == ["fast"]


def test_who_leaves_takes_nothing_from_the_others(carrier: Carrier) -> None:
    run = carrier.proxy(text(OPENAI, ASKS))
    gone, stays = ask(run), ask(run)
    gone.leave()
    arrived(run, 1).answer(listing("one"))
    assert names(stays) == ["one"]


def test_nothing_of_a_client_goes_there(carrier: Carrier) -> None:
    config = text(OPENAI, ASKS)
    run = carrier.proxy(config)
    ask(run, ("authorization", "Bearer mine"), ("cookie", "a=b"), ("openai-organization", "me"), ("x-other", "1"))
    arrival = arrived(run, 1)
    assert not {"authorization", "cookie", "openai-organization", "x-other"} & {*arrival.received.headers}
    arrival.answer(listing())


@pytest.mark.parametrize(
    ("provider", "target", "header"),
    [
        ("openai: {}", "/v1/models", ("authorization", "Bearer ours")),
        ("openai: {}, pathPrefix: /api", "/api/models", ("authorization", "Bearer ours")),
        ("anthropic: {}", "/v1/models?limit=1000", ("x-api-key", "ours")),
        ("gemini: {}", "/v1beta/openai/models", ("authorization", "Bearer ours")),
        (
            CUSTOM,
            "/a/models",
            ("authorization", "Bearer ours"),
        ),
    ],
)
def test_it_is_asked_by_the_provider_s_own_api(
    provider: str, target: str, header: tuple[str, str], carrier: Carrier
) -> None:
    config = of_backend(f"provider: {{{provider}, host: 127.0.0.1, port: 9001}}", ASKS).replace(
        "}]\n", ", policies: {auth: {key: ours}}}]\n"
    )
    run = carrier.proxy(config)
    asked = ask(run)
    received = arrived(run, 1).received
    assert received.target == target and received.headers[header[0]] == header[1]
    run.arrival.answer(listing("models/gemini", "other"))
    assert names(asked) == ["gemini", "other"]


@pytest.mark.parametrize(
    "provider",
    [
        "openai: {model: gpt-4o}",
        "azureopenai: {endpoint: a.example.com, deploymentName: gpt-4o}",
        "custom: {formats: [{type: Completions, path: /elsewhere}]}",
        "custom: {formats: [{type: Rerank}]}",
    ],
)
def test_who_has_no_list_or_one_model_is_not_asked(provider: str, carrier: Carrier) -> None:
    run = carrier.proxy(text(f"{provider}, host: 127.0.0.1, port: 9001", ASKS))
    assert ask(run).answer.status == 200
    assert not run.arrivals


def test_rules_say_which_of_them_a_caller_sees(carrier: Carrier) -> None:
    run = carrier.proxy(text(OPENAI, f"{ASKS}, {ONLY}"))
    asked = ask(run)
    arrived(run, 1).answer(listing("gpt-1", "other", "gpt-2"))
    assert names(asked) == ["gpt-1", "gpt-2"]


def test_lists_of_several_providers_are_merged_and_each_has_its_own_rules(carrier: Carrier) -> None:
    provider = "{{providers: [{{name: {0}, openai: {{}}, host: 127.0.0.{1}, port: 9001{2}}}]}}"
    rules = "authorization: {action: Deny, policy: {matchExpressions: ['llm.requestModel == \"both\"']}}"
    own = f", policies: {{ai: {{{ASKS}, routes: {{'*': Models}}, {rules}}}}}"
    groups = f"groups: [{provider.format('one', 1, own)}, {provider.format('two', 2, '')}]"
    run = carrier.proxy(of_backend(groups, ASKS))
    asked = ask(run)
    for each, found in zip(run.arrivals, (listing("a", "both"), listing("b", "both")), strict=True):
        each.answer(found)
    found = json.loads(asked.answer.body)["data"]
    assert [each["id"] for each in found] == ["a", "b", "both"]


def test_a_long_list_is_cut(carrier: Carrier) -> None:
    run = carrier.proxy(text(OPENAI, f"{ASKS}, {ONLY}"))
    asked = ask(run)
    arrived(run, 1).answer(listing(*(f"gpt-{number}" for number in range(1_100)), "gpt" * 100))
    assert len(names(asked)) == 1_000


def test_another_credential_s_list_is_not_taken_for_this_one_s(carrier: Carrier) -> None:
    config = text(OPENAI, ASKS).replace("}]\n", ", policies: {auth: {key: first}}}]\n")
    run = carrier.proxy(config)
    ask(run)
    arrived(run, 1).answer(listing("one"))
    run.load(config.replace("first", "second"))
    asked = ask(run)
    arrived(run, 2).answer(listing("two"))
    assert names(asked) == ["two"]
