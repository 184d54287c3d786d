"""The verdict table against the text of the specification, where that stands beside the repository.

Every row cites words that are there; every line of a table that sets a bound is cited; every name that the text writes
is a field or a value of some row. Without the text there is nothing to compare.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from gatewright.api.schema.names import FIELDS
from tests.rules.verdicts import specification
from tests.rules.verdicts.defaults import DEFAULTS
from tests.rules.verdicts.rows import ROWS
from tests.rules.verdicts.table import parts

__test__ = specification.is_there()
"""pytest collects nothing here where the text is absent: a skip would be a failure of a full run."""

OTHERS = ("Kubernetes", "Gatewright extension")
"""Sources of rows whose text is not compared."""

ANYTHING = "<any field>"

FREE = re.compile(
    r"\b(metadata|methods|routes|requestAttributes|requestMetadata|addRequestHeaders|responseMetadata)\.[^.]+$"
)
"""Paths that end in the key of a map."""

NO_FIELDS = {
    "types and kinds": "Authorization BackendAuth BackendFull BackendMCP BackendSimple BackendWithAI Condition "
    "Frontend GatewayParameters GatewayPolicy HTTPHeaderFilter LabelSelector LocalObjectReference "
    "BackendObjectReference ObjectMeta ParentReference Traffic v1alpha1",
    "short names of kinds": "gwb gwparams gwpol",
    "what is in Secrets": "accessKey secretKey sessionToken clientID tenantID clientSecret",
    "what expressions read": "extauthz llm",
    "what requests, tokens and answers hold": "Basic Bearer Origin Restricted USER aud iss system unknown vpnEmail "
    "vpnNode",
    "the standalone file and other objects": "listeners extAuthz tailscaled appProtocol scaleTargetRef",
    "values of JSON": "false null",
}
"""Names in the text that are no fields or values of the three kinds, by what they are."""


@pytest.fixture(scope="module")
def cited() -> dict[tuple[str, str], list[str]]:
    """(file, words) of every citation to the lines of the file with these words."""
    found = {}
    for spec in {row.spec for row in ROWS} | {default.spec for default in DEFAULTS}:
        file, _, words = spec.partition(": ")
        if file not in OTHERS:
            found[file, words] = [line for line in specification.lines(file) if words in line]
    return found


def test_cited_words_are_there(cited: dict[tuple[str, str], list[str]]) -> None:
    assert [citation for citation, lines in cited.items() if not lines] == []


@pytest.mark.parametrize("file", ["0-names.md", "1-resources.md", "2-policies.md"])
def test_every_table_line_is_cited(file: str, cited: dict[tuple[str, str], list[str]]) -> None:
    known = {line for (of, _), lines in cited.items() if of == file for line in lines}
    assert [line[:120] for line in specification.table_lines(file) if line not in known] == []


def test_every_field_is_in_a_line_that_its_rows_cite(cited: dict[tuple[str, str], list[str]]) -> None:
    """Where a type occurs often, its fields are compared once: by their own name and that of the field around."""
    spellings = {row.canonical: {r.neutral for r in FIELDS if r.canonical == row.canonical} for row in FIELDS}
    lines: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in ROWS:
        file, _, words = row.spec.partition(": ")
        names = [part for part in parts(FREE.sub(r"\1", row.path)) if isinstance(part, str)]
        if row.known:
            lines["".join(names[-2:-1]), names[-1]] += [ANYTHING] if file in OTHERS else cited[file, words]
    unnamed = [
        (around, name)
        for (around, name), texts in lines.items()
        if not any(re.search(rf"\b({'|'.join({name, *spellings.get(name, ())})})\b|{ANYTHING}", t) for t in texts)
    ]
    assert unnamed == []


def _known_names() -> Iterator[str]:
    for row in ROWS:
        yield from (part for part in parts(row.path) if isinstance(part, str))
        yield from _words(row.value)
    for name in FIELDS:
        yield from (name.neutral, name.canonical)


def _words(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, below in value.items():
            yield from (key, *_words(below))
    elif isinstance(value, list):
        for below in value:
            yield from _words(below)


@pytest.mark.parametrize("file", ["0-names.md", "1-resources.md", "2-policies.md"])
def test_every_name_of_the_text_is_in_a_row(file: str) -> None:
    known = {*_known_names(), *(name for names in NO_FIELDS.values() for name in names.split())}
    assert sorted(set(specification.names(file)) - known) == []
