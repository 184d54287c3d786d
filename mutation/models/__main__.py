"""Whether the verdict table notices each bound of a model: `scripts/mutate models`, minutes of one core.

Changed are, one at a time: every bound of every field (dropped, and moved by one), every value of an enum, every type,
what is required; every error that a rule between fields can yield, every name in a rule, every comparison and every
part of a condition. A change counts as noticed when a row of `tests/rules/verdicts` fares otherwise with it. Exit code
1: some change was not noticed, or a class is reached by no row.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from unittest import mock

from gatewright.api.objects.kinds import KINDS
from gatewright.api.schema.model import model_in
from gatewright.api.schema.names import OUR_KINDS
from mutation.models import fields, rules
from mutation.models.hits import Hits, Model, hits
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


def main() -> int:
    reached = hits(ROWS)
    wrong = [f"{name} is reached by no row" for name in sorted(unreached(reached))]
    count = 0
    for what, is_noticed in (*of_fields(reached), *of_rules(reached)):
        count += 1
        if not is_noticed and not any(re.search(pattern, what) for pattern in SAME):
            wrong.append(what)
    print(*wrong, f"{count} changes, {len(wrong)} problems", sep="\n")
    return 1 if wrong else 0


def of_fields(reached: Mapping[Model, Hits]) -> Iterator[tuple[str, bool]]:
    """Each change of a bound of a field, and whether a row notices it."""
    for model, parts in reached.items():
        for mutant in fields.mutants(model):
            yield mutant.what, parts.notice(mutant.model)


def of_rules(reached: Mapping[Model, Hits]) -> Iterator[tuple[str, bool]]:
    """The same of rules between fields."""
    for model, parts in reached.items():
        for patch in rules.patches(model):
            with mock.patch.object(patch.holder, patch.name, patch.value):
                yield patch.what, parts.notice(model)


def unreached(reached: Mapping[Model, Hits]) -> set[str]:
    """Classes of our kinds that accept no part of a row: nothing of them was asked about."""
    waiting: list[Model] = [KINDS[kind].model for kind in OUR_KINDS]
    lacking, seen = set(), set[Model]()
    while waiting:
        model = waiting.pop()
        if model in seen:
            continue
        seen.add(model)
        if model not in reached or not reached[model].accepted:
            lacking.add(model.__name__)
        waiting += [below for field in model.model_fields.values() if (below := model_in(field.annotation))]
    return lacking - {"ObjectMeta"}


if __name__ == "__main__":
    sys.exit(main())
