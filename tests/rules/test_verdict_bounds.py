"""No bound of a model can be dropped or moved unnoticed: each change of one fails at least one row of the table.

Changed are, one at a time: every bound of every field (dropped, and moved by one), every value of an enum, every type,
what is required; every error that a rule between fields can yield, every name in a rule, every comparison and every
part of a condition; every suffix of a size. A change counts as noticed when a row fares otherwise with it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from unittest import mock

import pytest

from gatewright.api.objects.gateway_parameters import ParametersLogging
from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema import byte_size, log_level
from gatewright.api.schema.model import model_in
from gatewright.api.schema.names import OUR_KINDS
from gatewright.api.traffic.csrf import CSRF
from tests.rules.verdicts import mutation_fields, mutation_rules
from tests.rules.verdicts.hits import Hits, Model, hits
from tests.rules.verdicts.judge import verdict
from tests.rules.verdicts.rows import ROWS

SAME = {
    r"^Gateway\w+\.(api_version|kind|metadata):": "the envelope is Kubernetes' own",
    r"^(PolicyBackend|ConfigMap|LocalService|LocalBackendObject)Reference\.(group|kind):": "a rule names the kinds",
    r"^CSRF\.additional_origins: items: (without min_length|min_length)": "a rule says what an origin is",
    r"^(FrontendHTTP\.http2_frame_size|FrontendLimits\.\w+): without PlainValidator": "a rule reads the size",
    r"^AIPromptGuard\.hold_back: (without PlainValidator|any type)": "a rule reads the size",
    r"^MCPBackend\.max_answer_size: without PlainValidator": "likewise, a rule reads it",
    r"^(HTTPRouteRetry|Retry)\.codes: (without max_length|max_length 201)": "they differ, and there are 200",
    r"^Compression\.encodings: (without max_length|max_length 4)": "they differ, and there are three",
    r"^HTTPCORSFilter\.allow_methods: (without max_length|max_length 10)": "there are nine, and * stands alone",
    r"^ShutdownSpec\.(min: (without le|le \d+)|max: (without ge|ge -1))": "min is at most max",
    r"^AwsAssumeRole\.role_arn: min_length 2|^PolicyAncestorStatus\.controller_name: min_length 2": "by pattern",
    r"^(MCP|AI)Authorization(: |\.)": "as Authorization, of which there are rows",
    r"^(MCPGuardrailsProcessor|AwsBackend)\.\w+: required": "exactly one of one field",
    r"^AzureConfig: without 'TypeB'": "the other spelling of Foundry, which models do not see",
}
"""Changes after which the models mean the same, and why."""


@pytest.fixture(scope="module")
def reached() -> dict[Model, Hits]:
    return hits(ROWS)


LIST = "GatewayPolicy", "spec.traffic.csrf.additionalOrigins"
TOO_MANY = 17


@pytest.mark.parametrize(
    ("left_out", "unnoticed"),
    [(0, []), (16, ["max_length 15"]), (TOO_MANY, ["max_length 17", "without max_length"])],
)
def test_a_missing_row_is_noticed(left_out: int, unnoticed: list[str]) -> None:
    """The check itself: without the row at a bound, or above it, the bound can be moved or dropped."""
    rows = [row for row in ROWS if (row.kind, row.path) == LIST and len(row.value) != (left_out or -1)]
    found = hits(rows)[CSRF]
    changes = [mutant for mutant in mutation_fields.mutants(CSRF) if "additional_origins: m" in mutant.what]
    changes += [mutant for mutant in mutation_fields.mutants(CSRF) if "additional_origins: without m" in mutant.what]
    survivors = {mutant.what.partition(": ")[2] for mutant in changes if not found.notice(mutant.model)}
    assert {what for what in survivors if "max" in what} == set(unnoticed)


def same(what: str) -> bool:
    return any(re.search(pattern, what) for pattern in SAME)


@pytest.mark.slow
def test_every_bound_of_a_field_is_noticed(reached: dict[Model, Hits]) -> None:
    count = 0
    unnoticed = []
    for model, parts in reached.items():
        for mutant in mutation_fields.mutants(model):
            count += 1
            if not parts.notice(mutant.model):
                unnoticed.append(mutant.what)
    assert [what for what in unnoticed if not same(what)] == []
    assert count > 2500


@pytest.mark.slow
def test_every_rule_between_fields_is_noticed(reached: dict[Model, Hits]) -> None:
    count = 0
    unnoticed = []
    for model, parts in reached.items():
        for patch in mutation_rules.patches(model):
            count += 1
            with mock.patch.object(patch.holder, patch.name, patch.value):
                if not parts.notice(model):
                    unnoticed.append(patch.what)
    assert [what for what in unnoticed if not same(what)] == []
    assert count > 300


@pytest.mark.slow
def test_every_class_is_reached(reached: dict[Model, Hits]) -> None:
    """The two tests above ask every class that the three kinds are made of."""
    waiting: list[Model] = [KINDS[kind].model for kind in OUR_KINDS]
    lacking = set()
    seen: set[Model] = set()
    while waiting:
        model = waiting.pop()
        if model in seen:
            continue
        seen.add(model)
        if not reached[model].accepted:
            lacking.add(model.__name__)
        waiting += [below for field in model.model_fields.values() if (below := model_in(field.annotation))]
    assert lacking - {"ObjectMeta"} == set()


@pytest.mark.parametrize("suffix", [*byte_size._SUFFIXES, *byte_size._CUSTOMARY])
def test_every_suffix_of_a_size_is_noticed(suffix: str) -> None:
    rows = [row for row in ROWS if row.path.endswith("request.maxBytes")]
    with mock.patch.dict(byte_size._SUFFIXES), mock.patch.dict(byte_size._CUSTOMARY):
        byte_size._SUFFIXES.pop(suffix, None)
        byte_size._CUSTOMARY.pop(suffix, None)
        assert any(verdict(row)[0] != row.verdict for row in rows)


@pytest.mark.parametrize("level", log_level.LEVELS)
def test_every_level_is_noticed(level: str) -> None:
    rows = [row for row in ROWS if row.path == "spec.logging.level"]
    (rule,) = ParametersLogging.cel_rules
    less = replace(rule, cel=re.sub(rf"{level}\||\|{level}(?=\))", "", rule.cel))
    with mock.patch.object(ParametersLogging, "cel_rules", (less,)):
        assert any(verdict(row)[0] != row.verdict for row in rows)
