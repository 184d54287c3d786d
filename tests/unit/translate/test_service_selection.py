"""Selectors of MCP backends select what their labels say, and no more than a backend may have."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controlplane.derive import EVERYTHING
from controlplane.translate.backend.found_services import MOST_FOUND
from controlplane.translate.backend.service_selection import Labelled, groups, select, selection
from controlplane.translate.keys import ObjectKey
from controlplane.translate.namespaces import NAME_LABEL
from gatewright.api.backend.mcp_targets import McpSelector
from tests.unit.translate.test_program import CLASS, GATEWAY, world

LABELS = st.dictionaries(st.sampled_from(["a", "b", NAME_LABEL]), st.sampled_from(["x", "y", "one"]), max_size=3)
VALUES = st.lists(st.sampled_from(["x", "y", "one"]), min_size=1, max_size=2)
RULES = st.one_of(
    st.fixed_dictionaries(
        {"key": st.sampled_from(["a", "b", NAME_LABEL]), "operator": st.sampled_from(["In", "NotIn"]), "values": VALUES}
    ),
    st.fixed_dictionaries(
        {"key": st.sampled_from(["a", "b", NAME_LABEL]), "operator": st.sampled_from(["Exists", "DoesNotExist"])}
    ),
)
SELECTORS = st.fixed_dictionaries({}, optional={"matchLabels": LABELS, "matchExpressions": st.lists(RULES, max_size=2)})
NAMESPACES = st.dictionaries(st.sampled_from(["one", "two"]), LABELS, max_size=2)
SERVICES = st.dictionaries(st.tuples(st.sampled_from(["one", "two"]), st.sampled_from("st")), LABELS, max_size=4)


@given(
    st.fixed_dictionaries({}, optional={"namespaces": SELECTORS, "services": SELECTORS}),
    NAMESPACES,
    SERVICES,
)
def test_a_selection_is_what_label_selectors_match(
    written: dict[str, Any], namespaces: dict[str, dict[str, str]], services: dict[tuple[str, str], dict[str, str]]
) -> None:
    selector = McpSelector.model_validate(written)
    members: dict[object, int] = {}
    expected = 0
    for number, ((namespace, name), labels) in enumerate(services.items()):
        key, there = ObjectKey(namespace, name), namespaces.get(namespace)
        labelled = Labelled(tuple(labels.items()), None if there is None else tuple(there.items()))
        for group in {EVERYTHING, *groups(key, labelled)}:
            members[group] = members.get(group, 0) | 1 << number
        searched = namespace == "one" if selector.namespaces is None else False
        if selector.namespaces is not None and (there is not None or namespace == "one"):
            searched = selector.namespaces.matches({**(there or {}), NAME_LABEL: namespace})
        if searched and (selector.services is None or selector.services.matches(labels)):
            expected |= 1 << number
    assert select(selection("one", selector), lambda group: members.get(group, 0)) == expected


SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: s%03d, namespace: default, labels: {app: mcp}}
spec: {ports: [{port: 80, appProtocol: gatewright.dev/mcp}]}
---
"""
BACKEND = """
apiVersion: gatewright.dev/v1alpha1
kind: GatewayBackend
metadata: {name: tools, namespace: default, generation: 1}
spec:
  mcp:
    targets:
    - {name: all, selector: {services: {matchLabels: {app: mcp}}}}
    - {name: none, selector: {services: {matchLabels: {app: other}}}}
    - {name: last, static: {host: a.example, port: 80}}
---
"""


def resolved(count: int) -> tuple[str, str]:
    services = "".join(SERVICE % number for number in range(count))
    body = world(CLASS, GATEWAY, services, BACKEND).program.status("GatewayBackend", "default", "tools")
    assert body is not None
    (found,) = [each for each in body["conditions"] if each["type"] == "ResolvedRefs"]
    return found["status"], found["message"]


def test_a_backend_finds_so_many_services_and_its_status_names_the_first_that_is_left_out() -> None:
    none = "target none: no Service with an MCP port is selected"
    assert resolved(MOST_FOUND) == ("False", none)
    assert resolved(MOST_FOUND + 2) == (
        "False",
        "target all: the selectors of a backend find 256 Services at most; "
        "those from default/s256 on, and of targets after it, are left out",
    )
