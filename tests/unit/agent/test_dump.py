"""The configuration dump: complete, readable, and without one secret value."""

from __future__ import annotations

import json
from pathlib import Path

from dataplane.agent import dump
from dataplane.agent.resources import FILE, XDS, Resources
from dataplane.link.messages import ENDPOINT, RESOURCE, Record
from gatewright.wire.v1 import backend_pb2, bind_pb2, resource_pb2, secret_pb2


def resource(key: str, **kind: object) -> Record:
    return Record(RESOURCE, key, resource_pb2.Resource(key=key, min_revision=1, **kind).SerializeToString())  # type: ignore[arg-type]


def dumped(*records: Record, source: str = XDS) -> dict[str, dict[str, dict[str, object]]]:
    table = Resources()
    table.update(source, records)
    table.judge(set())
    found: dict[str, dict[str, dict[str, object]]] = json.loads(dump.as_json(dump.resources(table, {})))
    return found


def test_resources_are_shown_by_kind_and_key_with_their_source() -> None:
    endpoint = backend_pb2.Endpoint(key="e", backend="b", address="127.0.0.1", port=80)
    bind = resource("bind/a", bind=bind_pb2.Bind(port=80))
    found = dumped(bind, Record(ENDPOINT, "e", endpoint.SerializeToString()), source=FILE)
    assert found["bind"]["bind/a"] == {"source": "file", "minRevision": 1, "bind": {"port": 80}}
    assert found["endpoint"]["e"] == {
        "source": "file",
        "key": "e",
        "backend": "b",
        "address": "127.0.0.1",
        "port": 80,
    }


def test_secret_values_are_not_shown_their_names_are() -> None:
    secret = secret_pb2.Secret(namespace="default", name="tls", data={"tls.key": b"hunter2", "tls.crt": b"hunter2"})
    table = Resources()
    table.update(XDS, [resource("secret/default/tls", secret=secret)])
    table.judge(set())
    text = dump.as_json(dump.resources(table, {})).decode()
    assert "hunter2" not in text and "aHVudGVyMg" not in text
    assert "tls.key" in text and "tls.crt" in text


def test_what_cannot_be_read_is_shown_as_such() -> None:
    assert dumped(Record(RESOURCE, "route/x", b"\xff\xff"))["unreadable"] == {"route/x": {"source": "xds", "bytes": 2}}


def test_refusals_are_shown_with_the_last_good_version() -> None:
    table = Resources()
    table.update(XDS, [resource("bind/a", bind=bind_pb2.Bind(port=80))])
    table.judge(set())
    table.update(XDS, [resource("bind/a", bind=bind_pb2.Bind(port=81))])
    table.judge({"bind/a"})
    found = dump.resources(table, {"bind/a": "no"})
    assert found["bind"]["bind/a"]["bind"] == {"port": 80}
    assert found["refused"] == {"bind/a": "no"}


def test_a_dump_is_text_that_people_read() -> None:
    """Indented, names as they are written, and whatever is no JSON as its text."""
    text = dump.as_json({"m\u00fcnchen": {"port": 80}, "path": Path("/run/a.sock")}).decode()
    assert text.splitlines() == ["{", '  "m\u00fcnchen": {', '    "port": 80', "  },", '  "path": "/run/a.sock"', "}"]
    assert text.endswith("}\n")
