"""What counts as a difference between an object and what it should be."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.kube.writing.differences import APPLIED, fingerprint, is_as_wanted, marked
from controlplane.kube.writing.owned import Owned, addresses

SAME: list[tuple[Any, Any]] = [
    ({"a": 1}, {"a": 1, "more": 2}),
    ({"a": {}}, {}),
    ({"a": [], "b": "", "c": None, "d": False}, {}),
    ({"cpu": "1000m"}, {"cpu": "1"}),
    ({"ports": [{"port": 80}]}, {"ports": [{"port": 80, "nodePort": 30000}]}),
    ({"containers": [{"name": "a"}]}, {"containers": [{"name": "injected"}, {"name": "a", "image": "x"}]}),
    ({"ownerReferences": [{"uid": "1", "name": "a"}]}, {"ownerReferences": [{"uid": "2"}, {"uid": "1", "name": "a"}]}),
    ({"args": ["a", "b"]}, {"args": ["a", "b"]}),
    ({"args": []}, {"args": []}),
    ({"memory": 1024}, {"memory": "1Ki"}),
    ({"env": [{"name": "b"}, {"name": "a"}]}, {"env": [{"name": "a"}, {"name": "b"}]}),
    ({"ports": [{"port": 80}, {"port": 81}]}, {"ports": ["odd", {"port": 81}, {"name": "x"}, {"port": 80}]}),
    ({"a": {"b": {}}}, {"a": {}}),
]
DIFFERENT: list[tuple[Any, Any]] = [
    ({"a": 1}, {"a": 2}),
    ({"a": 1}, {}),
    ({"a": True}, {"a": 1}),
    ({"a": {"b": 1}}, {"a": "text"}),
    ({"a": [1]}, {"a": {}}),
    ({"cpu": "1000m"}, {"cpu": "2"}),
    ({"args": ["a", "b"]}, {"args": ["a", "b", "c"]}),
    ({"args": ["a", "b"]}, {"args": ["b", "a"]}),
    ({"ports": [{"port": 80}]}, {"ports": [{"port": 81}]}),
    ({"containers": [{"name": "a", "image": "x"}]}, {"containers": [{"name": "a", "image": "y"}]}),
    ({"ports": [{"port": 80}, {"port": 81}]}, {"ports": [{"port": 80}]}),
    ({"a": False}, {"a": 0}),
    ({"a": 0}, {"a": False}),
    ({"a": 1}, {"a": True}),
    ({"a": "x"}, {}),
    ({"a": True}, {}),
    ({"a": {"b": 1}}, {}),
    ({"a": {}}, {"a": []}),
    ({"a": [1]}, {}),
    ({"a": []}, {"a": {}}),
    ({"args": []}, {"args": ["a"]}),
    ({"args": [{"a": 1}]}, {"args": [{"a": 2}]}),
    ({"env": [{"name": "a"}, {"value": "b"}]}, {"env": [{"value": "b"}, {"name": "a"}]}),
    ({"env": [{"name": "a"}, "b"]}, {"env": ["b", {"name": "a"}]}),
    ({"env": [{"name": {"x": 1}}, {"name": {}}]}, {"env": [{"name": {}}]}),
    ({"text": "one"}, {"text": "other"}),
]


@pytest.mark.parametrize(("wanted", "live"), SAME)
def test_what_the_api_server_and_others_add_is_no_difference(wanted: Any, live: Any) -> None:
    assert is_as_wanted(live, wanted)


@pytest.mark.parametrize(("wanted", "live"), DIFFERENT)
def test_a_field_of_another_value_is_one(wanted: Any, live: Any) -> None:
    assert not is_as_wanted(live, wanted)


def test_a_field_that_is_no_longer_wanted_is_one() -> None:
    body = {"metadata": {"annotations": {}}, "spec": {"a": 1, "b": 2}}
    live = marked(body)
    assert live["metadata"]["annotations"].keys() == {APPLIED}
    assert is_as_wanted(live, marked(body))
    assert not is_as_wanted(live, marked({**body, "spec": {"a": 1}}))


def test_a_status_and_a_version_change_nothing_of_what_was_settled() -> None:
    body = {"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"a": 1}}
    later = {"metadata": {"name": "a", "resourceVersion": "2"}, "spec": {"a": 1}, "status": {"ready": 1}}
    assert fingerprint(body) == fingerprint(later) != fingerprint({**body, "spec": {"a": 2}})


def test_the_order_of_fields_says_nothing() -> None:
    one = {"metadata": {"name": "a", "annotations": {}}, "spec": {"a": 1, "b": 2}}
    other = {"spec": {"b": 2, "a": 1}, "metadata": {"annotations": {}, "name": "a"}}
    assert marked(one) == marked(other)
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(
    ("metadata", "is_the_same"),
    [
        ({"name": "a", "resourceVersion": "2"}, True),
        ({"name": "a", "managedFields": [1]}, True),
        ({"name": "a", "generation": 2}, True),
        ({"name": "a", "labels": {"b": "c"}}, False),
        ({"name": "a", "annotations": {"b": "c"}}, False),
        ({}, False),
        (None, False),
    ],
)
def test_what_somebody_changes_of_metadata_shows(metadata: object, is_the_same: bool) -> None:
    body = {"metadata": {"name": "a", "resourceVersion": "1"}, "spec": {"a": 1}}
    assert (fingerprint(body) == fingerprint({"metadata": metadata, "spec": {"a": 1}})) is is_the_same


SERVICES: list[tuple[dict[str, Any], tuple[tuple[str, str], ...]]] = [
    ({"spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.1"}}, ()),
    ({"spec": {"type": "ClusterIP", "clusterIP": "10.96.0.1"}}, (("IPAddress", "10.96.0.1"),)),
    ({"spec": {"clusterIP": "a", "clusterIPs": ["a", "fd00::1"]}}, (("IPAddress", "a"), ("IPAddress", "fd00::1"))),
    ({"spec": {"type": "ClusterIP", "clusterIP": "None", "clusterIPs": ["None"]}}, ()),
    ({"spec": {"replicas": 1}}, ()),
]


@pytest.mark.parametrize(("service", "expected"), SERVICES)
def test_addresses_of_a_service(service: dict[str, Any], expected: tuple[tuple[str, str], ...]) -> None:
    assert addresses([service]) == expected


def test_of_a_namespace_that_is_not_read_any_more_nothing_that_was_made_goes() -> None:
    assert Owned("Deployment").left("shop") == []
