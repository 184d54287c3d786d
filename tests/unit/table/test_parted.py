"""A dictionary with cheap copies behaves as a dict, and its copies do not see each other's changes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.table.parted import LIMIT, PartedDict, grown

KEYS = st.integers(0, 30).map(lambda number: b"key-%d" % number)
EDITS = st.lists(st.tuples(st.sampled_from(("set", "delete", "copy")), KEYS, st.integers()), max_size=60)


@settings(deadline=None)
@given(EDITS)
def test_copies_are_independent(edits: list[tuple[str, bytes, int]]) -> None:
    versions: list[tuple[PartedDict[bytes, int], dict[bytes, int]]] = [(PartedDict(), {})]
    for kind, key, value in edits:
        parted, model = versions[value % len(versions)]
        if kind == "set":
            parted[key] = model[key] = value
        elif kind == "delete" and key in model:
            del parted[key], model[key]
        elif kind == "copy":
            versions.append((parted.copy(), model.copy()))
    for parted, model in versions:
        assert dict(parted) == model and len(parted) == len(model) and bool(parted) == bool(model)
        assert all(parted.get(key) == value and key in parted for key, value in model.items())
        assert parted.get(b"none") is None and parted.get(b"none", 1) == 1 and b"none" not in parted


def test_grows_out_of_a_dict() -> None:
    small = {index: str(index) for index in range(LIMIT)}
    assert grown(small) is small
    small[LIMIT] = "more"
    large = grown(small)
    assert type(large) is PartedDict and dict(large) == small and len(large) == len(small)
    assert grown(large) is large


def test_entries_are_spread() -> None:
    parted: PartedDict[bytes, int] = PartedDict()
    for index in range(25_600):
        parted[b"host-%d" % index] = index
    sizes = [len(part) for part in parted.parts()]
    assert len(sizes) == 256 and min(sizes) > 40 and max(sizes) < 200
