"""Every golden case: all at once, one by one in the opposite order, and taken away again."""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path

import pytest

from controlplane.translate.keys import RESOURCE_TYPE
from gatewright.wire.v1 import resource_pb2
from tests.harness import yamls
from tests.unit.translate.golden import FOLDER, GOOD, World, brief, dumped, read, readable

CASES = sorted(FOLDER.glob("*.in.yaml"))


def case_name(path: Path) -> str:
    return path.name.removesuffix(".in.yaml")


@pytest.mark.parametrize("path", CASES, ids=case_name)
def test_case(path: Path) -> None:
    case = read(path)
    world = World()
    world.load(case)
    expected = path.with_name(f"{case_name(path)}.out.yaml")
    if os.environ.get("GOLDEN") == "write":
        expected.write_text(dumped(brief(world.output())))
    assert brief(world.output()) == yamls.load(expected.read_text())


@pytest.mark.parametrize("path", CASES, ids=case_name)
def test_order_does_not_matter_and_everything_can_be_taken_back(path: Path) -> None:
    case = read(path)
    at_once, one_by_one = World(), World()
    at_once.load(case)
    one_by_one.news(case)
    for edit in reversed(case.objects):
        one_by_one.apply([edit])
    assert one_by_one.resources == at_once.resources
    assert one_by_one.program.statuses() == at_once.program.statuses()
    for kind, key, _ in case.objects:
        one_by_one.apply([(kind, key, None)])
    assert one_by_one.resources == {}
    assert one_by_one.program.statuses() == {}


def test_there_are_cases() -> None:
    assert len(CASES) >= 15


# Every reason that a condition can have, by condition type.
REASONS = {
    "Accepted=True": {"Accepted", "ListenersNotValid", "PartiallyValid"},
    "Accepted=False": {
        "Conflicted", "HostnameConflict", "IncompatibleFilters", "Invalid", "InvalidParameters", "ListenersNotValid",
        "NoMatchingListenerHostname", "NoMatchingParent", "NoValidCACertificate", "NotAllowed", "NotAllowedByListeners",
        "ParentNotAccepted",
        "PortUnavailable", "ProtocolConflict", "TargetNotFound", "UnsupportedAddress", "UnsupportedProtocol",
        "UnsupportedValue",
    },
    "Attached=True": {"Attached"},
    "Attached=False": {"TargetNotFound"},
    "Conflicted=True": {"Conflicted", "HostnameConflict", "ProtocolConflict"},
    "Overridden=True": {"Overridden"},
    "PartiallyInvalid=True": {"IncompatibleFilters", "UnsupportedValue"},
    "Programmed=True": {"Programmed"},
    "Programmed=False": {
        "AddressNotUsable", "HostnameConflict", "Invalid", "ListenersNotValid", "NotAllowed", "ParentNotProgrammed",
        "Pending", "ProtocolConflict", "Rejected",
    },
    "ResolvedRefs=True": {"ResolvedRefs"},
    "ResolvedRefs=False": {
        "BackendLeadsBack", "BackendNotFound", "InvalidCACertificateRef", "InvalidCertificateRef",
        "InvalidClientCertificateRef", "InvalidExtensionRef", "InvalidKind", "InvalidRouteKinds",
        "InvalidSecret", "RefNotPermitted", "SecretNotFound", "UnsupportedProtocol",
    },
    "ResolvedRefs=Unknown": {"Pending"},
    "SupportedVersion=True": {"SupportedVersion"},
    "SupportedVersion=False": {"UnsupportedVersion"},
}  # fmt: skip
CONDITION = re.compile(r"\b([A-Za-z]+=(?:True|False|Unknown)) ([A-Za-z]+) \(\d+\)")


def test_every_reason_has_a_case_and_no_other_is_given() -> None:
    found = {f"{each}=True": {each} for each in itertools.chain.from_iterable(GOOD.values())}
    for path in FOLDER.glob("*.out.yaml"):
        for status, reason in CONDITION.findall(path.read_text()):
            found.setdefault(status, set()).add(reason)
    assert found == REASONS


def test_every_reason_is_on_the_page_of_conditions(root: Path) -> None:
    page = (root / "docs/conditions.md").read_text()
    named = {(status.partition("=")[0], reason) for status, reasons in REASONS.items() for reason in reasons}
    assert [reason for kind, reason in sorted(named) if reason != kind and f"`{reason}`" not in page] == []
    assert all(re.fullmatch(r"([A-Z]{1,3}[a-z]+)+", reason) for _, reason in named)


def test_maps_are_written_in_the_order_of_their_keys() -> None:
    """A message has them in any order, of whatever type the keys are."""
    for names in itertools.permutations(["b", "a", "c"]):
        message = resource_pb2.Resource(key="k")
        for name in names:
            message.secret.data[name] = b"x"
        found = readable(RESOURCE_TYPE, message.SerializeToString())
        assert list(found["secret"]["data"]) == ["a", "b", "c"]
