"""Virtual keys for LLM providers (docs/llm/keys.md): the objects of the page, both planes together. Keys come, rotate
and go while the proxy runs; their metadata says which models and how many tokens."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.fakes.both_planes import BothPlanes
from tests.fakes.web_objects import CLASS

GATEWAY = (
    CLASS
    + """---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: default}
spec:
  gatewayClassName: gatewright
  listeners: [{name: http, port: 80, protocol: HTTP}]
"""
)
PROVIDER = "{host: 127.0.0.1, port: 9001, openai: {}}"


def page(root: Path, tokens: int = 100_000) -> str:
    """The objects of the page, with a provider that can be reached in memory."""
    text = re.search(r"```yaml\n(apiVersion.*?)```", (root / "docs/llm/keys.md").read_text(), re.DOTALL)
    assert text is not None
    objects = text[1].replace("provider:\n      openai: {}", f"provider: {PROVIDER}")
    assert PROVIDER in objects
    return f"{GATEWAY}---\n{objects}".replace("tokens: 100000", f"tokens: {tokens}")


def key(name: str, *models: str, label: str = "true") -> str:
    value = json.dumps({"key": f"sk-{name}", "metadata": {"name": name.split("-", maxsplit=1)[0], "models": models}})
    return f"""
apiVersion: v1
kind: Secret
metadata: {{name: key-{name}, namespace: default, labels: {{llm-keys: "{label}"}}}}
stringData: {{k: '{value}'}}
"""


ANSWER = {"model": "m", "choices": [], "usage": {"prompt_tokens": 60, "completion_tokens": 5}}


def planes(root: Path, tokens: int = 100_000) -> BothPlanes:
    body = json.dumps(ANSWER)
    made = BothPlanes(page(root, tokens))
    made.answers["127.0.0.1:9001"] = (
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()
    )
    return made


def status(proxy: BothPlanes, name: str, model: str = "gpt-4o") -> int:
    body = json.dumps({"model": model, "messages": []})
    found, _ = proxy.ask("/v1/chat/completions", f"authorization: Bearer sk-{name}", method="POST", body=body)
    return found


def test_a_key_may_use_its_models_and_no_others(root: Path) -> None:
    proxy = planes(root)
    asked = [status(proxy, "search-1", model) for model in ("gpt-4o", "fast", "gpt-4o-mini", "o3")]
    assert asked == [200, 200, 403, 403]
    assert status(proxy, "unknown") == 401
    _, listed = proxy.ask("/v1/models", "authorization: Bearer sk-search-1")
    assert [each["id"] for each in json.loads(listed)["data"]] == ["fast"]


def test_keys_are_created_rotated_and_revoked_while_the_proxy_runs(root: Path) -> None:
    proxy = planes(root)
    assert status(proxy, "ann-1") == 401
    proxy.load(key("ann-1", "gpt-4o"))
    assert status(proxy, "ann-1") == 200
    proxy.load(key("ann-2", "gpt-4o"))
    assert [status(proxy, "ann-1"), status(proxy, "ann-2")] == [200, 200]
    proxy.remove("Secret", "key-ann-1")
    assert [status(proxy, "ann-1"), status(proxy, "ann-2")] == [401, 200]
    proxy.load(key("ann-2", "o3"))  # the same key may use another model
    assert [status(proxy, "ann-2"), status(proxy, "ann-2", "o3")] == [403, 200]
    proxy.load(key("ann-2", "o3", label="no"))
    assert status(proxy, "ann-2", "o3") == 401


def test_each_name_has_its_own_tokens_whatever_its_keys_are(root: Path) -> None:
    proxy = planes(root, tokens=100)  # a call has 65
    for name in ("ann-1", "ann-2", "bob-1"):
        proxy.load(key(name, "gpt-4o"))
    assert [status(proxy, each) for each in ("ann-1", "ann-2", "ann-1", "bob-1", "bob-1", "bob-1")] == [
        *(200, 200, 429),
        *(200, 200, 429),
    ]


def test_a_key_without_models_may_use_none(root: Path) -> None:
    proxy = planes(root)
    proxy.load(key("eve-1", "gpt-4o").replace(', "models": ["gpt-4o"]', ""))
    assert status(proxy, "eve-1") == 403
