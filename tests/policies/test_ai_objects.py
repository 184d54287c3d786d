"""LLM providers as objects, through both planes: policies for one provider, and providers that are Services."""

from __future__ import annotations

import json

from tests.fakes.both_planes import BothPlanes

OBJECTS = """
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: gatewright, generation: 1}
spec: {controllerName: gatewright.dev/controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: default, generation: 1}
spec:
  gatewayClassName: gatewright
  listeners: [{name: http, protocol: HTTP, port: 80}]
---
apiVersion: v1
kind: Service
metadata: {name: llama, namespace: default}
spec: {ports: [{port: 8000}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: llama-1, namespace: default, labels: {kubernetes.io/service-name: llama}}
addressType: IPv4
ports: [{port: 8000}]
endpoints: [{addresses: [10.0.0.1]}]
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: models, namespace: default, generation: 1}
spec:
  ai:
    groups:
      - providers:
          - {name: own, custom: {model: m1, formats: [{type: Completions}], backendRef: {name: llama, port: 8000}}}
      - providers: [{name: other, openai: {model: m2}, host: 127.0.0.1, port: 9001}]
---
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: all, namespace: default, generation: 1}
spec:
  targetRefs: [{group: gatewright.dev, kind: GatewayBackend, name: models}]
  backend:
    auth: {key: sk-all}
    ai: {routes: {/models: Models}, modelAliases: {all: x}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: models, namespace: default, generation: 1}
spec:
  parentRefs: [{name: web}]
  rules: [{backendRefs: [{group: gatewright.dev, kind: GatewayBackend, name: models}]}]
---
"""
ONE = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayPolicy
metadata: {name: one, namespace: default, generation: 1}
spec:
  targetRefs: [{group: gatewright.dev, kind: GatewayBackend, name: models, sectionName: %s}]
  backend: {%s}
"""
CHAT = json.dumps({"model": "gpt", "messages": []})


def listed(planes: BothPlanes) -> list[str]:
    status, body = planes.ask("/models")
    assert status == 200
    return [each["id"] for each in json.loads(body)["data"]]


def asked(planes: BothPlanes) -> tuple[str, str]:
    """Who was asked, and what it got."""
    planes.taken()
    planes.ask("/chat", "content-type: application/json", method="POST", body=CHAT)
    (found,) = planes.taken()
    return found


def test_a_policy_for_one_provider_reaches_no_other() -> None:
    planes = BothPlanes(OBJECTS)
    assert listed(planes) == ["m1", "all", "m2"]
    planes.load(ONE % ("other", "ai: {modelAliases: {only: x}}"))
    assert listed(planes) == ["m1", "all", "m2", "only"]
    planes.load(ONE % ("own", "ai: {modelAliases: {only: x}, routes: {/models: Models}}"))
    assert listed(planes) == ["m1", "only", "m2", "all"]
    planes.remove("GatewayPolicy", "one")
    assert listed(planes) == ["m1", "all", "m2"]


def test_policies_of_the_backend_hold_for_a_provider_that_is_a_service() -> None:
    planes = BothPlanes(OBJECTS)
    label, sent = asked(planes)
    assert label == "10.0.0.1:8000" and sent.startswith("POST /v1/chat/completions ")
    assert "authorization: bearer sk-all" in sent.lower()
    assert '"model": "m1"' in sent


def test_a_credential_for_one_provider_takes_the_place_of_that_of_all() -> None:
    planes = BothPlanes(OBJECTS + ONE % ("own", "auth: {key: sk-one}"))
    sent = asked(planes)[1].lower()
    assert "bearer sk-one" in sent and "sk-all" not in sent
    planes = BothPlanes(OBJECTS + ONE % ("other", "auth: {key: sk-one}"))
    sent = asked(planes)[1].lower()
    assert "bearer sk-all" in sent and "sk-one" not in sent


def test_policies_of_a_provider_win_over_the_backends_field_by_field() -> None:
    first = OBJECTS[OBJECTS.index("      - providers:\n") : OBJECTS.index("      - providers: [")]
    alone = OBJECTS.replace(first, "")
    whole = alone.replace("  ai:\n", "  policies: {auth: {key: sk-whole}, http: {requestTimeout: 7s}}\n  ai:\n")
    own = whole.replace("port: 9001}", "port: 9001, policies: {auth: {key: sk-own}}}")
    for text, key, seconds in (alone, "all", None), (whole, "whole", 7.0), (own, "own", 7.0):
        planes = BothPlanes(text)
        label, sent = asked(planes)
        assert label == "127.0.0.1:9001" and f"authorization: bearer sk-{key}\r\n" in sent.lower()
        (plan,) = (each for each in planes.applier.current.table.backends.values() if each.endpoints)
        assert plan.request_timeout == seconds
