"""The configuration of the rate limit server: which limit a descriptor has, and what is wrong with a file."""

from __future__ import annotations

import pytest

from controlplane.ratelimit import limits
from controlplane.ratelimit.limits import LimitError, Limits
from controlplane.ratelimit.windows import Unit

TREE = b"""
domain: shop
descriptors:
- key: tier
  value: gold
  rate_limit: {unit: second, requests_per_unit: 100}
- key: tier
  value: s*
  rate_limit: {unit: Minute, requests_per_unit: 7}
- key: tier
  rate_limit: {unit: HOUR, requests_per_unit: 3}
- key: path
  value: /a*
  share_threshold: true
  rate_limit: {unit: day, requests_per_unit: 5}
- key: user
  descriptors:
  - key: path
    value: /slow
    rate_limit: {unit: month, requests_per_unit: 9, name: slow}
  - key: model
    shadow_mode: true
    rate_limit: {unit: year, requests_per_unit: 1}
- key: free
  rate_limit: {unlimited: true}
- key: number
  value: 5
  rate_limit: {unit: week, requests_per_unit: 0}
"""


@pytest.fixture
def tree() -> Limits:
    return limits.read([("a.yaml", TREE)])


FOUND = {
    (("tier", "gold"),): (100, Unit.SECOND, "shop.tier_gold"),
    (("tier", "silver"),): (7, Unit.MINUTE, "shop.tier_s*"),
    (("tier", "other"),): (3, Unit.HOUR, "shop.tier"),
    (("user", "ann"), ("path", "/slow")): (9, Unit.MONTH, "shop.user.path_/slow"),
    (("user", "ann"), ("model", "m")): (1, Unit.YEAR, "shop.user.model"),
    (("number", "5"),): (0, Unit.WEEK, "shop.number_5"),
}


@pytest.mark.parametrize("entries", FOUND)
def test_the_most_exact_entry_counts(tree: Limits, entries: tuple[tuple[str, str], ...]) -> None:
    found = tree.find("shop", entries)
    assert found is not None and found.entries == entries
    assert (found.limit.per_unit, found.limit.unit, found.limit.path) == FOUND[entries]


@pytest.mark.parametrize(
    ("domain", "entries"),
    [
        ("other", [("tier", "gold")]),
        ("shop", [("unknown", "gold")]),
        ("shop", [("user", "ann")]),
        ("shop", [("user", "ann"), ("path", "/other")]),
        ("shop", [("tier", "gold"), ("path", "/")]),
    ],
)
def test_what_the_files_do_not_name_has_no_limit(tree: Limits, domain: str, entries: list[tuple[str, str]]) -> None:
    assert tree.find(domain, entries) is None


def test_values_of_one_pattern_count_together_where_that_is_wanted(tree: Limits) -> None:
    counted = {found.entries for value in ("/a", "/ab", "/ac") if (found := tree.find("shop", [("path", value)]))}
    assert counted == {(("path", "/a*"),)}


def test_flags(tree: Limits) -> None:
    free, shadow = tree.find("shop", [("free", "x")]), tree.find("shop", [("user", "a"), ("model", "m")])
    assert free is not None and free.limit.is_unlimited
    assert shadow is not None and shadow.limit.is_shadow


WRONG = {
    "a: [": "a.yaml: not YAML: ",
    "domain: d\ndomain: e": "a.yaml: not YAML: line 2: duplicate key",
    "domain: d\ndescriptors: " + "[" * 5000: "a.yaml: not YAML: line 2: ",
    "domain: d\ndescriptors: " + "".join(f"[&a{n} [], *a{n}, " for n in range(5000)): "a.yaml: not YAML: line 2: ",
    "[]": "a.yaml: the file: must be an object",
    "descriptors: []": "a.yaml: domain: must be a name",
    "domain: d\nx: 1": "a.yaml: x: is not known; there are descriptors, domain",
    "domain: d\ndescriptors: 1": "a.yaml: descriptors: must be a list",
    "domain: d\ndescriptors: [{value: a}]": "a.yaml: descriptors[0].key: must be a name",
    "domain: d\ndescriptors: [{key: a, value: []}]": "a.yaml: descriptors[0].value: must be a text",
    "domain: d\ndescriptors: [{key: a}, {key: a}]": "a.yaml: descriptors[1]: a is there twice",
    "domain: d\ndescriptors: [{key: a, value: b*}, {key: a, value: b*}]": "a.yaml: descriptors[1]: a b* is there twice",
    "domain: d\ndescriptors: [{key: a, rate_limit: {requests_per_unit: 1}}]": (
        "a.yaml: descriptors[0].rate_limit.unit: must be one of second, minute, hour, day, week, month, year"
    ),
    "domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: -1}}]": (
        "a.yaml: descriptors[0].rate_limit.requests_per_unit: must be a whole number from 0 to 4294967295"
    ),
    "domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, unlimited: true}}]": (
        "a.yaml: descriptors[0].rate_limit.unit: must be absent when unlimited is true"
    ),
    "domain: d\ndescriptors: [{key: a, quota_mode: true}]": (
        "a.yaml: descriptors[0].quota_mode: quotas are not supported"
    ),
    "domain: d\ndescriptors: [{key: a, share_threshold: true}]": (
        "a.yaml: descriptors[0].share_threshold: needs a value that ends with *"
    ),
    "domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, name: n, replaces: [{name: n}]}}]": (
        "a.yaml: descriptors[0].rate_limit.replaces: must name other limits"
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_named_with_its_place(text: str) -> None:
    with pytest.raises(LimitError) as raised:
        limits.read([("a.yaml", text.encode())])
    assert str(raised.value).startswith(WRONG[text])


def test_a_domain_is_in_one_file() -> None:
    with pytest.raises(LimitError, match=r"b.yaml: domain: 'd' is in another file already"):
        limits.read([("a.yaml", b"domain: d"), ("b.yaml", b"domain: d")])
