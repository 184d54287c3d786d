"""Policies that are not accepted: their guards refuse what they would have guarded, the rest is not sent."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.derive import TransformError
from controlplane.sources import decode, file_state
from controlplane.sources.tree import Tree
from controlplane.translate.conditions import UNTRANSLATED
from gatewright.api.lower import to_wire
from gatewright.attach.policies import SECURITY_OF_CONNECTIONS
from gatewright.wire.v1 import policy_pb2, resource_pb2
from tests.unit.translate.golden import World
from tests.unit.translate.test_program import CLASS, GATEWAY, ON_GATEWAY, ROUTE, SERVICE, policy, world

pytestmark = pytest.mark.usefixtures("a_setting_waits")

CACHING = "backend: {ai: {promptCaching: {}}}"
"""A setting that does not work yet, of what guards."""
NOT_SUPPORTED = policy("a", ON_GATEWAY, "csrf: {}, timeouts: {request: 9s}").replace(
    "  traffic:", f"  {CACHING}\n  traffic:"
)
FINE = ["Accepted=True Accepted (1)", "Attached=True Attached (1)", "ResolvedRefs=True ResolvedRefs (1)"]


def sent(made: World) -> dict[str, policy_pb2.Policy]:
    """Policies by the last part of their keys."""
    return {
        name.rpartition("/")[2]: resource_pb2.Resource.FromString(data).policy
        for (_, _, name), data in made.resources.items()
        if name.startswith("policy/")
    }


def read(*texts: str) -> World:
    """What a controller makes of these texts of one file, one after the other."""
    made = world(CLASS, GATEWAY)
    folder = Tree(decode.decode, decode.with_generation)
    for text in texts:
        *_, staged = folder.stage("a.yaml", text)
        assert isinstance(staged, file_state.Staged)
        made.program.apply(folder.commit(staged))
    return made


def test_guards_of_a_policy_with_a_setting_that_is_not_supported() -> None:
    made = world(CLASS, GATEWAY, NOT_SUPPORTED)
    assert sent(made).keys() == {"csrf", "backend_ai"}
    why = "not supported yet: spec.backend.ai.promptCaching"
    for guard in sent(made).values():
        assert guard.places and guard.order and guard.invalid == why
    assert made.conditions("GatewayPolicy", "a") == [
        f"Accepted=False Invalid (1): {why}; what csrf, backend.ai would protect is refused",
        "Attached=True Attached (1)",
        "ResolvedRefs=Unknown Pending (1): not examined, because the policy is not accepted",
    ]


FRONTEND = {
    "http": ("frontend_http", "{requestId: Keep}", "{requestId: Sometimes}"),
    "tls": ("frontend_tls", "{minProtocolVersion: '1.3'}", "{minProtocolVersion: '4'}"),
    "proxyProtocol": ("proxy_protocol", "{mode: Strict}", "{mode: Stricter}"),
    "connect": ("connect", "{mode: Route}", "{mode: Teleport}"),
    "networkAuthorization": ("network_authorization", "{policy: {matchExpressions: ['true']}}", "{policy: 1}"),
}
"""Guards of `frontend` to their name on the wire, a value, and one that nobody knows."""


def frontend(settings: str, more: str = "") -> str:
    return policy("a", ON_GATEWAY, "").replace("traffic: {}", f"frontend: {settings}\n  {more}")


def test_the_table_has_all_guards_of_frontend() -> None:
    assert {field for field, _, _ in FRONTEND.values()} == set(SECURITY_OF_CONNECTIONS)


@pytest.mark.parametrize("name", FRONTEND)
def test_a_guard_of_frontend_that_cannot_be_read_is_sent_as_impossible(name: str) -> None:
    """By default each of them would be laxer. What is right beside it is not sent: nobody knows what was meant."""
    field, good, bad = FRONTEND[name]
    made = read(frontend(f"{{{name}: {bad}, tcp: {{keepalive: {{retries: 3}}}}}}"))
    assert sent(made).keys() == {field} and sent(made)[field].invalid.startswith(f"not valid: spec.frontend.{name}")
    (accepted, *_) = made.conditions("GatewayPolicy", "a")
    assert accepted.endswith(f"; what frontend.{name} would protect is refused")
    assert sent(read(frontend(f"{{{name}: {bad}}}"), frontend(f"{{{name}: {good}}}")))[field].invalid == ""


@pytest.mark.parametrize("name", FRONTEND)
@pytest.mark.parametrize(("lacking", "closed"), [(CACHING, {"backend_ai"})])
def test_a_setting_that_is_not_supported_elsewhere_does_not_close_a_gateway(
    name: str, lacking: str, closed: set[str]
) -> None:
    field, good, _ = FRONTEND[name]
    made = read(frontend(f"{{{name}: {good}}}", lacking))
    assert sent(made)[field].invalid == "" and sent(made)[field].places
    assert {other for other, message in sent(made).items() if message.invalid} == closed == sent(made).keys() - {field}
    (accepted, *_) = made.conditions("GatewayPolicy", "a")
    assert accepted.startswith("Accepted=False Invalid (1): not supported yet: spec.")
    assert accepted.endswith(f"; as written acts frontend.{name}")


def test_they_take_their_field_from_others_who_are_told() -> None:
    made = world(CLASS, GATEWAY, NOT_SUPPORTED, policy("b", ON_GATEWAY, "csrf: {}"))
    conflict = "Conflicted=True Conflicted (1): traffic.csrf of GatewayPolicy default/a counts on Gateway default/gw"
    assert made.conditions("GatewayPolicy", "b") == [*FINE, conflict]


@pytest.mark.parametrize(
    ("traffic", "guards"),
    [
        ("authorization: {policy: {matchExpressions: ['a =']}}, timeouts: {request: 1s}", {"authorization"}),
        ("csrf: {additionalOrigins: []}, rateLimit: 7", {"csrf", "rate_limit"}),
        ("authorisation: {}", {"authorization"}),  # misspelt: who knows what was meant
        ("phase: PreRouting, csrf: {}, authorization: 1", {"authorization", "csrf"}),
        ("timeouts: {request: soon}", set()),
    ],
)
def test_guards_of_a_policy_that_is_not_valid(traffic: str, guards: set[str]) -> None:
    """From the first reading on: nobody remembers a good version."""
    made = read(policy("a", ON_GATEWAY, traffic))
    assert sent(made).keys() == guards
    early = "PreRouting" in traffic
    for message in sent(made).values():
        assert message.invalid.startswith("not valid: spec.traffic")
        assert (message.phase == policy_pb2.PHASE_PRE_ROUTING) == early
    if guards:
        (accepted, attached, _) = made.conditions("GatewayPolicy", "a")
        assert accepted.startswith("Accepted=False Invalid (1): not valid: ") and attached == FINE[1]


def test_a_target_that_cannot_be_read_is_left_out() -> None:
    made = read(policy("a", f"{ON_GATEWAY}, {{kind: 7}}", "csrf: {}"))
    assert [place.object.name for place in sent(made)["csrf"].places] == ["gw"]
    assert not sent(read(policy("a", "{kind: 7}", "csrf: {}")))


ON_ROUTE = "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}"
ON_SERVICE = "{group: '', kind: Service, name: s}"
SELECTED = """  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  targetSelectors: [{group: gateway.networking.k8s.io, kind: Gateway, matchLabels: {}}]
"""


@pytest.mark.parametrize(
    ("targets", "traffic"),
    [
        (f"{ON_GATEWAY}, {ON_SERVICE}", "csrf: {}"),  # not one of traffic's targets
        (", ".join([ON_GATEWAY] * 17), "csrf: {}"),  # one too many
        (f"{ON_GATEWAY}, {ON_ROUTE}", "phase: PreRouting, csrf: {}"),  # routes have no such phase
    ],
)
def test_targets_that_make_a_policy_invalid_do_not_open_the_others(targets: str, traffic: str) -> None:
    guard = sent(read(policy("a", targets, traffic)))["csrf"]
    assert guard.invalid and "gw" in {place.object.name for place in guard.places}
    assert guard.phase != policy_pb2.PHASE_PRE_ROUTING


def test_both_lists_of_targets_count_where_there_may_be_one() -> None:
    text = policy("a", ON_GATEWAY, "csrf: {}").replace(f"  targetRefs: [{ON_GATEWAY}]\n", SELECTED)
    assert SELECTED in text
    assert [place.object.name for place in sent(read(text))["csrf"].places] == ["gw"]


@pytest.mark.parametrize("strategy", ["{inheritance: Overide}", "{inheritence: Override}", "Override", "[]"])
def test_inheritance_that_cannot_be_read_opens_nothing_for_more_specific_policies(strategy: str) -> None:
    text = policy("a", ON_GATEWAY, "csrf: {}").replace("spec:\n", f"spec:\n  strategy: {strategy}\n")
    guard = sent(read(text))["csrf"]
    assert guard.invalid and guard.inheritance == policy_pb2.INHERITANCE_OVERRIDE


@pytest.mark.parametrize("strategy", ["{}", "{inheritance: Default}", "null"])
def test_inheritance_that_can_be_read_is_kept(strategy: str) -> None:
    text = policy("a", ON_GATEWAY, "csrf: 1").replace("spec:\n", f"spec:\n  strategy: {strategy}\n")
    assert sent(read(text))["csrf"].inheritance != policy_pb2.INHERITANCE_OVERRIDE


def test_the_last_good_version_counts_and_a_mend_ends_the_refusal() -> None:
    good, bad = policy("a", ON_GATEWAY, "csrf: {}"), policy("a", ON_GATEWAY, "csrf: {additionalOrigins: []}")
    assert sent(read(good, bad))["csrf"].invalid == ""
    worse = policy("a", ON_GATEWAY, "csrf: 1, authorization: 1")
    assert sent(read(bad, worse)).keys() == {"csrf", "authorization"}
    assert sent(read(bad, worse, good))["csrf"].invalid == ""
    assert not sent(read(bad, ""))


def test_a_bug_of_ours_closes_what_the_policy_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    """And concerns no other object."""
    lower = to_wire.policies

    def buggy(traffic: Any, references: to_wire.References) -> Any:
        if traffic.timeouts is not None:
            raise ValueError("out of range")
        return lower(traffic, references)

    monkeypatch.setattr(to_wire, "policies", buggy)
    made = world(CLASS, GATEWAY)
    with pytest.raises(TransformError, match="out of range"):
        made.put(policy("a", ON_GATEWAY, "csrf: {}, timeouts: {request: 1s}") + policy("b", ON_GATEWAY, "buffer: {}"))
    assert {name: message.invalid for name, message in sent(made).items()} == {"csrf": UNTRANSLATED, "buffer": ""}
    (accepted, *_) = made.conditions("GatewayPolicy", "a")
    assert accepted == f"Accepted=False Invalid (1): {UNTRANSLATED}; what csrf would protect is refused"
    assert made.conditions("GatewayPolicy", "b") == FINE


def test_a_route_on_which_we_have_a_bug_is_not_served_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def buggy(*_: Any, **__: Any) -> Any:
        raise ValueError("out of range")

    monkeypatch.setattr(to_wire, "rule_policies", buggy)
    made = world(CLASS, GATEWAY, SERVICE)
    with pytest.raises(TransformError, match="out of range"):
        made.put(ROUTE)
    assert f"Accepted=False UnsupportedValue (1): {UNTRANSLATED}" in made.conditions("HTTPRoute", "shop", entry=0)
    assert not [name for _, _, name in made.resources if name.startswith("route/")]
