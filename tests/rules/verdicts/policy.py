"""Verdicts on the envelope of GatewayPolicy (1-resources, GatewayPolicy)."""

from __future__ import annotations

from typing import Any, Final

from tests.rules.verdicts.common import (
    GROUP,
    KIND,
    P,
    R,
    group,
    kind,
    section_name,
)
from tests.rules.verdicts.frontend import FRONTEND
from tests.rules.verdicts.subsets import FULL
from tests.rules.verdicts.table import Nested, Rows, shape
from tests.rules.verdicts.traffic import TRAFFIC
from tests.rules.verdicts.words import (
    entries,
    enum,
    exactly_one,
    given,
    invalid,
    items,
    nested,
    required,
    text,
    unknown,
    valid,
)

_GATEWAY_API: Final = "gateway.networking.k8s.io"
_REFS = R + "| targetRefs | array | 1 to 16 items; each: `group` (Group, required), `kind` (Kind, required)"
_SELECTORS = R + "| targetSelectors | array | 1 to 16 items; each: `group`, `kind`, `matchLabels`"
_LIMIT = P + "| GatewayPolicy targetRefs / targetSelectors | 1 to 16 items each |"
_ONE = R + "Exactly one of `targetRefs`, `targetSelectors` must be set."
_STRATEGY = R + "PolicyStrategy: `inheritance` (enum `Default`, `Override`; valid only on traffic policies)"


def target(kind_name: str, **more: Any) -> dict[str, Any]:
    """A target reference to an object of a kind that policies attach to."""
    groups = {"Service": "", "GatewayBackend": "gatewright.dev"}
    return {"group": groups.get(kind_name, _GATEWAY_API), "kind": kind_name, "name": "t", **more}


def _selector(kind_name: str, **more: Any) -> dict[str, Any]:
    return {key: value for key, value in {**target(kind_name), "matchLabels": {}, **more}.items() if key != "name"}


def _group_and_kind(spec: str) -> Rows:
    yield required("group", spec)
    yield from group("group", spec)
    yield valid("group", "", GROUP)
    yield valid("group", "a" * 253, GROUP)
    yield required("kind", spec)
    yield from kind("kind", spec)
    yield from (valid("kind", good, KIND) for good in ("K" * 63, "k", "A-1"))
    yield from section_name("sectionName", spec)


REFERENCE = shape(
    target("Gateway"),
    _group_and_kind(_REFS),
    required("name", _REFS),
    text("name", 1, 253, _REFS),
    unknown("namespace", "other", R + "Targets must be in the same namespace as the policy."),
)
SELECTOR = shape(
    _selector("Gateway"),
    _group_and_kind(_SELECTORS),
    required("matchLabels", _SELECTORS),
    entries("matchLabels", 0, None, _SELECTORS),
    invalid("matchLabels", {"a": 1}, _SELECTORS),
    unknown("name", "n", _SELECTORS),
)

# Which section attaches to what.

_FRONTEND = R + "`frontend` may target only a Gateway (not Listener or ListenerSet)."
_TRAFFIC = R + "`traffic` may target a Gateway (optional `sectionName` = listener), a ListenerSet, or a Route"
_BACKEND = R + "`backend` may target a Gateway (optional listener), ListenerSet, Route (optional rule), Service"
_PHASE = P + "`PreRouting` requires the target to be a Gateway or Listener"
_L7: Final = ("Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute")
_ALL: Final = (*_L7, "TCPRoute", "TLSRoute", "UDPRoute", "Service", "GatewayBackend")


def _attachment() -> Rows:
    for name in _ALL:
        yield from _attached("frontend", name, name == "Gateway", _FRONTEND)
        yield from _attached("traffic", name, name in _L7, _TRAFFIC)
        yield from _attached("backend", name, True, _BACKEND)
    for section in ("frontend", "traffic", "backend"):
        for wrong in (
            target("Gateway", group=""),
            target("Gateway", kind="Pod"),
            target("Service", group=_GATEWAY_API),
        ):
            yield invalid("", {"targetRefs": [wrong], section: {}}, R + "Attachment and merge rules:")
        mixed = [target("Gateway"), target("Gateway", kind="Pod", name="u")]
        yield invalid("", {"targetRefs": mixed, section: {}}, R + "Attachment and merge rules:")
        yield invalid("", {"targetSelectors": [_selector("Pod")], section: {}}, R + "Attachment and merge rules:")
        other = _selector("Gateway", group="")
        yield invalid("", {"targetSelectors": [other], section: {}}, R + "Attachment and merge rules:")
        yield valid("", {"targetSelectors": [_selector("Gateway")], section: {}}, R + "Attachment and merge rules:")
    listener = target("Gateway", sectionName="http")
    yield invalid("", {"targetRefs": [listener], "frontend": {}}, _FRONTEND)
    yield invalid("", {"targetSelectors": [_selector("Gateway", sectionName="http")], "frontend": {}}, _FRONTEND)
    yield valid("", {"targetRefs": [listener], "traffic": {}}, _TRAFFIC)
    yield valid("", {"targetRefs": [target("Service", sectionName="http")], "backend": {}}, _BACKEND)
    yield valid("", {"targetRefs": [target("GatewayBackend", sectionName="p0")], "backend": {}}, _BACKEND)
    for name, verdict in (("Service", invalid), ("GatewayBackend", valid)):
        yield verdict("", {"targetRefs": [target(name)], "backend": {"ai": {}}}, _BACKEND)
        yield verdict("", {"targetSelectors": [_selector(name)], "backend": {"ai": {}}}, _BACKEND)
        yield valid("", {"targetRefs": [target(name)], "backend": {"mcp": {}}}, _BACKEND)
    for name in ("HTTPRoute", "GRPCRoute"):
        yield invalid("", {"targetRefs": [target(name)], "traffic": {"phase": "PreRouting"}}, _PHASE)
        yield invalid("", {"targetSelectors": [_selector(name)], "traffic": {"phase": "PreRouting"}}, _PHASE)
        yield valid("", {"targetRefs": [target(name)], "traffic": {"phase": "PostRouting"}}, _PHASE)
    yield valid("", {"targetRefs": [listener], "traffic": {"phase": "PreRouting"}}, _PHASE)


def _attached(section: str, kind_name: str, good: bool, spec: str) -> Rows:
    for field, made in (("targetRefs", target), ("targetSelectors", _selector)):
        yield (valid if good else invalid)("", {field: [made(kind_name)], section: {}}, spec)
        yield invalid("", {field: [made(kind_name, group="x")], section: {}}, spec)


def _refs(n: int) -> dict[str, Any]:
    return target("Gateway", name=f"t{n}")


def _strategies() -> Rows:
    base: dict[str, Any] = {"targetRefs": [target("Gateway")], "strategy": {"inheritance": "Override"}}
    yield valid("", base, _STRATEGY)
    yield from (valid("", {**base, section: {}}, _STRATEGY) for section in ("frontend", "backend"))


_SPEC = R + "| strategy | PolicyStrategy | optional; applies to the whole policy object |"
SPEC = shape(
    {"targetRefs": [target("Gateway")]},
    required("", R + "### GatewayPolicy"),
    exactly_one(_ONE, {"targetRefs": [target("Gateway")], "targetSelectors": [_selector("Gateway")]}),
    items("targetRefs", 1, 16, _LIMIT, _refs),
    Nested("targetRefs[0]", REFERENCE, _REFS),
    given({}, items("targetSelectors", 1, 16, _LIMIT, _selector("Gateway"))),
    Nested("targetSelectors[0]", SELECTOR, _SELECTORS, {"targetSelectors": [_selector("Gateway")]}),
    Nested(
        "strategy",
        shape({}, enum("inheritance", ("Default", "Override"), _STRATEGY)),
        _SPEC,
        {"targetRefs": [target("Gateway")], "traffic": {}},
    ),
    _strategies(),
    valid("", {"targetRefs": [target("Gateway")], "strategy": {}}, _STRATEGY),
    _attachment(),
    nested("frontend", FRONTEND, R + "| frontend | Frontend | optional; incoming connection and request handling |"),
    nested("traffic", TRAFFIC, R + "| traffic | Traffic | optional; request processing |"),
    nested("backend", FULL, R + "| backend | BackendFull | optional; connection to destination backends |"),
    unknown("targetRef", target("Gateway"), _ONE),
)
