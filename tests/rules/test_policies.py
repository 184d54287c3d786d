"""The table of policies says what models, wire, registry and the file say: what is missing of a policy is named here.

Pages, tests and filters of each are in test_registry. All that a policy needs: docs/architecture.md, Adding a policy.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from pydantic import BaseModel

from dataplane.filters.registry import ROWS
from gatewright.api.backend.backend import BackendFull, BackendWithAI
from gatewright.api.backend.simple import BackendSimple
from gatewright.api.checks.backend_kinds import OWNED
from gatewright.api.checks.honoured import VALUES
from gatewright.api.checks.unsupported import policy_of
from gatewright.api.frontend.frontend import Frontend
from gatewright.api.generate.waiting import is_list
from gatewright.api.objects.gateway import GatewayBackendTLS
from gatewright.api.objects.inference_pool import InferencePoolSpec
from gatewright.api.objects.kinds import KINDS
from gatewright.api.routes.http_filters import HTTPRouteFilter
from gatewright.api.routes.http_route import HTTPRouteRule
from gatewright.api.schema.camel import to_camel
from gatewright.api.schema.model import Model, model_in
from gatewright.api.standalone.file import StandaloneFile
from gatewright.api.standalone.form import file_form
from gatewright.api.standalone.policies import RoutePolicies
from gatewright.api.traffic.conditional import OrConditional
from gatewright.api.traffic.traffic import RequestPolicies, Traffic
from gatewright.attach import policies
from gatewright.attach.policies import (
    BACKEND,
    BY_NAME,
    FRONTEND,
    FULL,
    GATEWAY,
    HTTP,
    POLICIES,
    POOL,
    RULE,
    SIMPLE,
    TCP,
    TRAFFIC,
    UDP,
    WITH_AI,
    Policy,
    of,
)
from gatewright.wire.v1 import policy_pb2
from tests.fakes.waiting import SETTING

WIRE: Final = [field.name for field in policy_pb2.Policy.DESCRIPTOR.oneofs_by_name["field"].fields]
MODELS: Final[dict[str, type[BaseModel]]] = {
    TRAFFIC: RequestPolicies,
    BACKEND: BackendFull,
    FRONTEND: Frontend,
    RULE: HTTPRouteFilter,
    GATEWAY: GatewayBackendTLS,
    POOL: InferencePoolSpec,
}
SUBSETS: Final[dict[str, type[BaseModel]]] = {SIMPLE: BackendSimple, WITH_AI: BackendWithAI, FULL: BackendFull}


def attributes(*parts: str) -> set[str]:
    return {row.attribute for row in of(*parts)}


def test_a_policy_has_one_row() -> None:
    assert len(BY_NAME) == len(POLICIES) == len(policies.BY_ATTRIBUTE) == len(policies.BY_FILE)
    assert all(row.does and row.part in MODELS for row in POLICIES)


@pytest.mark.parametrize("part", [TRAFFIC, BACKEND, FRONTEND])
def test_a_part_has_the_policies_of_the_table(part: str) -> None:
    assert set(MODELS[part].model_fields) == attributes(part)
    assert getattr(MODELS[part], "parts") == (part,)  # noqa: B009


def test_of_traffic_there_is_but_the_phase_beside() -> None:
    assert set(Traffic.model_fields) - {"phase"} == attributes(TRAFFIC)


def test_a_rule_a_gateway_and_a_pool_have_theirs() -> None:
    assert attributes(RULE) <= {*HTTPRouteFilter.model_fields, *HTTPRouteRule.model_fields}
    assert attributes(GATEWAY) <= set(GatewayBackendTLS.model_fields)
    assert attributes(POOL) <= set(InferencePoolSpec.model_fields)
    fields = {row.attribute for row in of(TRAFFIC, RULE) if row.attribute in HTTPRouteRule.model_fields}
    filters = {row.attribute for row in of(TRAFFIC) if row.rule_attribute in HTTPRouteFilter.model_fields}
    assert fields == {row.attribute for row in POLICIES if row.inline == "field"}
    assert filters | {"header_modifiers"} == {row.attribute for row in POLICIES if row.inline == "filter"}
    assert {"request_header_modifier", "response_header_modifier"} <= set(HTTPRouteFilter.model_fields)


@pytest.mark.parametrize("subset", SUBSETS)
def test_each_set_of_backend_policies_has_those_of_the_table(subset: str) -> None:
    smaller = [*SUBSETS][: [*SUBSETS].index(subset) + 1]
    assert set(SUBSETS[subset].model_fields) == {row.attribute for row in of(BACKEND) if row.subset in smaller}


def test_a_route_of_the_file_takes_the_policies_of_rules_requests_and_backends() -> None:
    assert set(RoutePolicies.model_fields) == {row.file_attribute for row in of(TRAFFIC, RULE, BACKEND)}
    assert set(file_form(Traffic).model_fields) - {"phase"} == {row.file_attribute for row in of(TRAFFIC)}
    assert set(file_form(BackendFull).model_fields) == {row.file_attribute for row in of(BACKEND)}


@pytest.mark.parametrize("name", WIRE)
def test_a_policy_of_the_wire_has_a_row(name: str) -> None:
    assert name in BY_NAME


@pytest.mark.parametrize("row", POLICIES, ids=lambda row: row.name)
def test_a_policy_that_works_travels(row: Policy) -> None:
    """One of security travels even while it waits: it refuses what it protects."""
    assert row.name in WIRE or (row.waits_as_a_whole and not row.security)


def test_proxies_act_in_the_order_of_the_table() -> None:
    acts, listed = [row.name for row in ROWS], [row.name for row in POLICIES if row.name in WIRE]
    first = next((pair for pair in zip(acts, listed, strict=False) if len({*pair}) == 2), ("nothing", "nothing"))
    assert acts == listed, (
        f"where dataplane/filters/registry.py has {first[0]}, gatewright/attach/policies.py has {first[1]}: "
        "a policy has the same place in both"
    )


def test_both_planes_know_the_same_security_policies() -> None:
    assert {row.name for row in ROWS if row.refuses} == {
        row.name for row in POLICIES if row.security and row.name in WIRE
    }


def test_conditional_is_what_the_model_says() -> None:
    models = {
        row.name: model_in(MODELS[row.part].model_fields[row.attribute].annotation) for row in of(TRAFFIC, BACKEND)
    }
    found = {name for name, model in models.items() if model is not None and issubclass(model, OrConditional)}
    assert found == {row.name for row in POLICIES if row.conditional}


def test_a_setting_that_waits_is_one() -> None:
    """Also the one that tests take for one, when none waits."""
    waits = [(row, each.path, each.in_file or each.path) for row in POLICIES for each in row.waits if each.path]
    for row, path, in_file in [*waits, (BY_NAME["backend_ai"], SETTING, SETTING)]:
        assert exists(MODELS[row.part].model_fields[row.attribute].annotation, path)
        form: Any = file_form(MODELS[row.part])
        assert exists(form.model_fields[row.file_attribute].annotation, in_file)


def exists(annotation: Any, path: str) -> bool:
    for name in path.split("."):
        model = model_in(annotation)
        fields = {} if model is None else {field.alias or each: field for each, field in model.model_fields.items()}
        if name.removesuffix("[]") not in fields:
            return False
        annotation = fields[name.removesuffix("[]")].annotation
        if name.endswith("[]") and not is_list(annotation):
            return False
    return True


def test_routes_carry_what_the_table_names() -> None:
    assert {carried for row in POLICIES for carried in row.carries} == {HTTP, TCP, UDP}
    assert all(HTTP in row.carries for row in POLICIES)


def test_values_that_do_not_work_are_of_fields_that_exist() -> None:
    models = {
        model.__name__: model for model in models_below([StandaloneFile, *(kind.model for kind in KINDS.values())])
    }
    assert [key for key in VALUES if key[1] not in models[key[0]].model_fields] == []


def models_below(models: list[type[Model]]) -> set[type[BaseModel]]:
    found: set[type[BaseModel]] = set()
    waiting: list[type[BaseModel]] = [*models]
    while waiting:
        model = waiting.pop()
        if model not in found:
            found.add(model)
            waiting += [inner for field in model.model_fields.values() if (inner := model_in(field.annotation))]
    return found


def test_a_field_of_two_parts_is_that_of_the_first() -> None:
    names = ("transformation", "ext_authz", "tls")
    found = [policy_of(RoutePolicies, name) for name in names]
    assert [row.name for row in found if row] == ["transformation", "ext_auth", "backend_tls"]
    assert [to_camel(row.file_attribute) for row in found if row] == ["transformation", "extAuthz", "tls"]


def test_the_policy_of_a_kind_of_backends_works_with_its_kind() -> None:
    """And it is refused where the kind is."""
    rows = {row.attribute: row for row in of(BACKEND)}
    assert [name for name, kind in OWNED.items() if rows[name].waits_as_a_whole is kind.works] == []


def test_what_becomes_of_a_rules_own_settings() -> None:
    assert [row.name for row in POLICIES if row.may_be_locked] == ["cors", "ext_auth", "timeouts", "retry"]
    assert [row.name for row in POLICIES if row.drops_its_rule] == ["session_persistence", "timeouts", "retry"]
    assert {row.name for row in POLICIES if row.is_in_rules} == {
        *("cors", "ext_auth", "header_modifiers", "url_rewrite", "request_redirect", "timeouts", "retry"),
        *("request_mirror", "session_persistence"),
    }
