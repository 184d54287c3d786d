"""`gatewright import litellm`: what becomes of the configuration of LiteLLM's proxy."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from controlplane.cli import __main__ as command
from gatewright.api.standalone import standalone
from gatewright.api.standalone.imported.litellm import Imported, NotLitellms, imported
from tests.carriers import CARRIERS, Received, Response
from tests.fakes.llm_toys import CHATTED, as_json, post
from tests.harness import yamls

SECRET = "sk-s3cret-value"
CONFIG = """
model_list:
  - model_name: gpt
    litellm_params:
      model: openai/gpt-4o
      api_base: http://127.0.0.1:9001/v1
      api_key: os.environ/OPENAI_KEY
      temperature: 0.2
      rpm: 10
      input_cost_per_token: 0.0000025
      output_cost_per_token: 1e-05
  - model_name: gpt
    litellm_params: {model: azure/dep, api_base: "https://own.openai.azure.com", api_version: v1, api_key: KEY}
    model_info: {id: x}
  - model_name: claude
    litellm_params: {model: hosted_vllm/llama, api_base: "http://127.0.0.2:9001/v1", timeout: 7}
  - model_name: other
    litellm_params: {model: sagemaker/x}
  - model_name: "any/*"
    litellm_params: {model: openai/*}
litellm_settings:
  fallbacks: [{gpt: [claude]}]
  num_retries: 3
  cache: true
  unheard_of: 1
router_settings:
  {routing_strategy: simple-shuffle, allowed_fails: 2, cooldown_time: 30, model_group_alias: {gpt-4: gpt}}
general_settings: {master_key: KEY, database_url: x}
environment_variables: {A: b}
"""
LEFT = {
    "model_list[0].litellm_params.rpm",
    "model_list[1].litellm_params.api_key",
    "model_list[1].model_info.id",
    "model_list[3]",
    "model_list[4]",
    "litellm_settings.cache",
    "litellm_settings.unheard_of",
    "general_settings.master_key",
    "general_settings.database_url",
    "environment_variables",
}


def made() -> Imported:
    return imported(CONFIG.replace("KEY}", f"{SECRET}}}").replace("master_key: KEY", f"master_key: {SECRET}"))


def test_what_is_written_passes_lint_and_what_is_not_carried_is_listed_by_path() -> None:
    found = made()
    loaded = standalone.load(yamls.dump(found.document), "config.yaml")
    assert [str(each) for each in loaded.problems] == []
    assert set(found.left_out) == LEFT
    assert found.models == ["gpt", "claude", "gpt-4"]
    assert found.variables == ["OPENAI_KEY", "MODEL_1_API_KEY", "MASTER_KEY"]


def test_no_secret_is_copied() -> None:
    found = made()
    assert SECRET not in json.dumps([found.document, found.left_out])


def test_deployments_of_one_name_are_equal_and_fallbacks_come_behind() -> None:
    _, gpt, claude = made().document["binds"][0]["listeners"][0]["routes"]
    (backend,) = gpt["backends"]
    names = [[each["name"] for each in group["providers"]] for group in backend["ai"]["groups"]]
    assert names == [["g1-1", "g1-2"], ["g2-1"]]
    assert backend["policies"]["health"] == {"eviction": {"duration": "30000ms", "consecutiveFailures": 3}}
    assert gpt["policies"]["retry"]["attempts"] == 4  # three, and one for the provider behind
    assert claude["policies"]["retry"]["attempts"] == 3
    assert [each["headers"][0]["value"] for each in gpt["matches"]] == ["gpt", "gpt-4"]
    assert len(claude["backends"][0]["ai"]["groups"]) == 1
    assert made().document["config"]["prices"]["models"] == {"gpt-4o": {"input": "2.5", "output": "10"}}


def test_requests_go_where_litellm_sends_them() -> None:
    text = re.sub(r'\{"env": "(\w+)"\}', r'{"value": "value-of-\1"}', json.dumps(made().document))
    document = json.loads(text)
    document["binds"][0]["listeners"][0]["routes"][1]["backends"][0]["ai"]["groups"][0]["providers"].pop()  # Azure
    run = CARRIERS["http1"].proxy(yamls.dump(document))
    key = ("authorization", "Bearer value-of-MASTER_KEY")

    def answering(got: Received) -> Response:
        return as_json(CHATTED, 503 if got.authority == "127.0.0.1:9001" else 200)

    body = {"model": "gpt-4", "messages": [{"role": "user", "content": "hi"}]}
    carried = run.carry(post("/v1/chat/completions", body, key), answering)
    first, second = carried.reached
    assert (carried.answer.status, first.target, second.authority) == (200, "/v1/chat/completions", "127.0.0.2:9001")
    sent: Any = json.loads(first.body)
    assert (sent["model"], sent["temperature"]) == ("gpt-4o", 0.2)
    assert first.headers["authorization"] == "Bearer value-of-OPENAI_KEY"
    assert first.headers.get("x-gatewright-model") is None
    assert json.loads(second.body)["model"] == "llama"
    assert run.carry(post("/v1/chat/completions", {**body, "model": "nobody"}, key)).answer.status == 404
    assert run.carry(post("/v1/chat/completions", body)).answer.status == 401


ONE = """
model_list: [{{model_name: {name}, litellm_params: {{model: {model}, {params}}}}}]
router_settings: {{{settings}}}
"""


def one(name: str = "a", model: str = "openai/x", params: str = "seed: 1", settings: str = "") -> Imported:
    return imported(ONE.format(name=name, model=model, params=params, settings=settings))


@pytest.mark.parametrize("seconds", ["600", "99999", "0.5", "99.9999"])
def test_times_are_written_as_lint_takes_them(seconds: str) -> None:
    found = one(params=f"timeout: {seconds}", settings=f"timeout: {seconds}, cooldown_time: {seconds}")
    assert found.left_out == {}
    assert standalone.load(yamls.dump(found.document), "config.yaml").problems == ()


@pytest.mark.parametrize(
    ("params", "settings"),
    [
        *(
            (f"{key}: {value}", "")
            for key in ("timeout", "request_timeout")
            for value in (".inf", ".nan", "1e300", "-1")
        ),
        *(("", f"{key}: {value}") for key in ("timeout", "cooldown_time") for value in (".inf", ".nan", "1e300", "x")),
        *(("", f"{key}: {value}") for key in ("allowed_fails", "num_retries") for value in ("-7", "true", "1e9")),
        *(
            (f"input_cost_per_token: {value}", "")
            for value in (".nan", ".inf", "-1", "1e-30", "'1e999990'", "'1e999999'")
        ),
    ],
)
def test_numbers_that_no_field_can_have_are_listed(params: str, settings: str) -> None:
    found = one(params=params or "seed: 1", settings=settings)
    place = "model_list[0].litellm_params" if params else "router_settings"
    assert list(found.left_out) == [f"{place}.{(params or settings).partition(':')[0]}"]
    assert standalone.load(yamls.dump(found.document), "config.yaml").problems == ()


@pytest.mark.parametrize(
    ("name", "model", "params"),
    [
        ('"a\\nb"', "openai/x", "seed: 1"),
        ("''", "openai/x", "seed: 1"),
        ("a", "openai/", "seed: 1"),
        *(("a", f"{kind}/x", 'api_base: "http://[x"') for kind in ("azure", "ollama", "hosted_vllm")),
        ("a", "hosted_vllm/x", 'api_base: "http://h:99999"'),
    ],
)
def test_a_deployment_that_has_no_form_here_is_listed(name: str, model: str, params: str) -> None:
    found = one(name, model, params)
    assert (list(found.left_out), found.document) == (["model_list[0]"], {})


def test_two_prices_of_one_model_are_listed() -> None:
    priced = "{{model_name: {0}, litellm_params: {{model: openai/x, input_cost_per_token: {1}}}}}".format
    found = imported(f"model_list: [{priced('a', '1e-6')}, {priced('b', '2e-6')}, {priced('c', '1e-6')}]")
    assert found.document["config"]["prices"]["models"] == {"x": {"input": "1"}}
    assert list(found.left_out) == ["model_list[1].litellm_params"]


@pytest.mark.parametrize("text", ["[]", "a: 1", "model_list: {}", "model_list: ["])
def test_what_is_no_configuration_is_refused(text: str) -> None:
    with pytest.raises(NotLitellms):
        imported(text)


def test_the_command_writes_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, output = tmp_path / "config.yaml", tmp_path / "out.yaml"
    source.write_text(CONFIG)
    assert command.main(["import", "litellm", str(source), "-o", str(output)]) == 1
    assert "not carried: litellm_settings.unheard_of: not known here" in capsys.readouterr().err
    assert not standalone.load(output.read_text(), str(output)).problems
