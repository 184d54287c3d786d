"""The CRDs in a real API server: accepted, shown as promised, and of the same opinion as the models."""

from __future__ import annotations

from typing import Any

import pytest

from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.names import API_VERSION, OUR_KINDS
from tests.cluster.kube import Answer, ApiServer
from tests.harness.waiting import wait_until
from tests.rules.test_claimed_limits import LIMITS, Bound, size
from tests.rules.verdicts.defaults import DEFAULTS
from tests.rules.verdicts.rows import ROWS
from tests.rules.verdicts.table import OBJECTS, Row, parts

pytestmark = pytest.mark.slow

DRY = "dryRun=All&fieldValidation=Strict"
REFUSED = (400, 422)
"""Not readable as the kind at all (an unknown field), or read and found invalid."""


def collection(kind: str) -> str:
    return f"/apis/{API_VERSION}/namespaces/default/{KINDS[kind].plural}"


def create(server: ApiServer, document: dict[str, Any]) -> Answer:
    return server.request("POST", f"{collection(document['kind'])}?{DRY}", document)


def discovered(cluster: ApiServer, kind: str) -> list[dict[str, Any]]:
    rows = cluster.request("GET", f"/apis/{API_VERSION}").body.get("resources", ())
    return [row for row in rows if row["kind"] == kind and "/" not in row["name"]]


@pytest.mark.parametrize("kind", OUR_KINDS)
def test_discovery_tells_names_and_category(cluster: ApiServer, kind: str) -> None:
    (found,) = wait_until(lambda: discovered(cluster, kind), f"{kind} is told")  # a moment after it is served
    names = {"GatewayBackend": "gwb", "GatewayParameters": "gwparams", "GatewayPolicy": "gwpol"}
    assert (found["shortNames"], found["categories"], found["namespaced"]) == ([names[kind]], ["gatewright"], True)


@pytest.mark.parametrize("kind", OUR_KINDS)
def test_columns_are_those_of_kubectl_get(cluster: ApiServer, kind: str) -> None:
    answer = cluster.request(
        "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{KINDS[kind].plural}.gatewright.dev"
    )
    (version,) = answer.body["spec"]["versions"]
    columns = [column["name"] for column in version["additionalPrinterColumns"]]
    assert columns[-1] == "Age"
    assert set(columns[:-1]) <= {"Accepted", "Attached", "Programmed"}
    assert columns[0] == "Accepted"
    assert version["subresources"] == {"status": {}}


@pytest.mark.parametrize("kind", OUR_KINDS)
def test_models_and_api_server_agree_on_every_row(cluster: ApiServer, kind: str) -> None:
    """`dryRun`: judged as it would be, defaults applied, nothing kept."""
    rows = [row for row in ROWS if row.kind == kind and row.cel and not row.of_status]
    assert len(rows) > 50
    wrong = [told for row in rows if (told := disagreement(row, create(cluster, row.document())))]
    assert wrong == []


OF_SPEC = [
    pytest.param([limit for limit in case.values[0] if isinstance(limit, Bound)], id=case.marks[0].args[0])
    for case in LIMITS
    if any(isinstance(limit, Bound) and limit.path.startswith("spec.") for limit in case.values[0])
]
"""The rows of the specification's table of limits that bound what may be written; of a status: test_status_rows."""


@pytest.mark.parametrize("limits", OF_SPEC)
def test_limits_at_an_api_server(cluster: ApiServer, limits: list[Bound]) -> None:
    """One case for each row: what lies at a bound, and one beyond it."""
    for bound in limits:
        at = {each for each in (bound.low, bound.high) if each is not None}
        sizes = at | {bound.low - 1 if bound.low else None, bound.high + 1 if bound.high is not None else None}
        rows = [row for row in ROWS if (row.kind, row.path) == (bound.kind, bound.path) and size(row.value) in sizes]
        assert {row.verdict for row in rows} == {"valid", "invalid"}, bound
        assert [told for row in rows if row.cel and (told := disagreement(row, create(cluster, row.document())))] == []


@pytest.mark.parametrize("kind", ["GatewayBackend", "GatewayPolicy"])
def test_an_api_server_fills_in_what_nobody_sets(cluster: ApiServer, kind: str) -> None:
    """Defaults of the specification, those of its table of limits among them. Of GatewayParameters it fills in none:
    they are layers, and what one layer leaves open another one may say."""
    beside_conditional = "spec.traffic.extAuth.failureMode: None"  # filled in, it would count as set
    wrong: list[str] = []
    for default in [each for each in DEFAULTS if each.kind == kind]:
        value: Any = create(cluster, {"kind": kind, **OBJECTS[kind], "spec": default.within}).body
        for part in parts(default.path):
            value = value.get(part) if isinstance(value, dict) else value[int(part)]
        if value != default.value:
            wrong.append(f"{default.path}: {value}")
    assert wrong == ([beside_conditional] if kind == "GatewayPolicy" else [])


@pytest.mark.parametrize("kind", OUR_KINDS)
def test_status_rows(cluster: ApiServer, kind: str) -> None:
    """Status is written through its subresource, of an object that exists."""
    document = {"kind": kind, **OBJECTS[kind], "metadata": {"name": "with-status"}}
    path = f"{collection(kind)}/with-status"
    assert cluster.request("POST", collection(kind), document).status == 201
    rows = [row for row in ROWS if row.kind == kind and row.cel and row.of_status]
    assert rows
    wrong: list[str] = []
    for row in rows:
        status = row.document().get("status")
        answer = cluster.request("PATCH", f"{path}/status?{DRY}", {"status": status}, "application/merge-patch+json")
        wrong += filter(None, [disagreement(row, answer)])
    assert wrong == []


def disagreement(row: Row, answer: Answer) -> str | None:
    """None when the server says what the row says; a server that fails agrees with nobody."""
    said = "valid" if answer.status in (200, 201) else "invalid" if answer.status in REFUSED else str(answer.status)
    return None if said == row.verdict else f"{row}; the API server says {said}: {answer.message[:300]}"
