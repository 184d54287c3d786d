"""Nothing that must not be seen passes through redaction."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from controlplane.snapshot import RESOURCE_TYPE, Snapshots
from controlplane.snapshot.redact import hide, redacted
from controlplane.translate.backend import secrets
from controlplane.translate.keys import ObjectKey
from gatewright.wire.v1 import bind_pb2, resource_pb2, secret_pb2

VALUE = b"-----BEGIN PRIVATE KEY-----"


def as_any(resource: resource_pb2.Resource) -> AnyMessage:
    return AnyMessage(type_url=RESOURCE_TYPE, value=resource.SerializeToString())


def test_secret_keeps_its_keys_and_loses_its_values() -> None:
    secret = secret_pb2.Secret(namespace="shop", name="tls", data={"tls.key": VALUE, "tls.crt": VALUE})
    shown = redacted(as_any(resource_pb2.Resource(key="secret/shop/tls", secret=secret)))
    assert VALUE not in shown.value
    resource = resource_pb2.Resource.FromString(shown.value)
    assert dict(resource.secret.data) == {"tls.key": b"[redacted]", "tls.crt": b"[redacted]"}
    assert (resource.key, resource.secret.name) == ("secret/shop/tls", "tls")


def test_users_that_a_policy_writes_itself_are_hidden() -> None:
    name = "secret/shop/users/basic_authentication"
    content = secrets.resource(ObjectKey("shop", "users"), {".htaccess": b"ann:" + VALUE}, name)
    shown = redacted(AnyMessage(type_url=RESOURCE_TYPE, value=content))
    assert VALUE in content and VALUE not in shown.value
    assert list(resource_pb2.Resource.FromString(shown.value).secret.data) == [".htaccess"]


def test_secret_under_another_key_is_hidden_too() -> None:
    secret = secret_pb2.Secret(data={"password": VALUE})
    assert VALUE not in redacted(as_any(resource_pb2.Resource(key="route/httproute/shop/a/0", secret=secret))).value


def test_other_resources_pass_whole() -> None:
    resource = resource_pb2.Resource(key="bind/shop/web/80", bind=bind_pb2.Bind())
    assert redacted(as_any(resource)) == as_any(resource)


def test_fields_of_a_newer_revision_are_dropped() -> None:
    unknown = b"\xfa\x01\x05TOKEN"  # field 31, a string
    shown = redacted(AnyMessage(type_url=RESOURCE_TYPE, value=b"\x0a\x03key" + unknown))
    assert shown.value == b"\x0a\x03key"


def test_unreadable_content_of_ours_is_hidden_whole() -> None:
    assert redacted(AnyMessage(type_url=RESOURCE_TYPE, value=b"\x0a\xff")).value == b""


def test_foreign_types_are_opaque() -> None:
    foreign = AnyMessage(type_url="type.googleapis.com/envoy.config.cluster.v3.Cluster", value=b"\x0a\x01c")
    assert redacted(foreign) is foreign


def test_records_do_not_print_their_content() -> None:
    snapshots = Snapshots()
    (snapshot,) = snapshots.apply([("shop/web", RESOURCE_TYPE, "secret/shop/tls", VALUE)])
    (record,) = snapshot.resources(RESOURCE_TYPE)
    assert record.content().value == VALUE
    assert "PRIVATE" not in repr(record) + repr(snapshot)


FieldProto = descriptor_pb2.FieldDescriptorProto

SHAPES = {
    "text": (FieldProto.TYPE_STRING, FieldProto.LABEL_OPTIONAL),
    "raw": (FieldProto.TYPE_BYTES, FieldProto.LABEL_OPTIONAL),
    "number": (FieldProto.TYPE_INT32, FieldProto.LABEL_OPTIONAL),
    "several": (FieldProto.TYPE_STRING, FieldProto.LABEL_REPEATED),
}


@pytest.fixture(scope="module")
def marked() -> type[Message]:
    """A message with a field of every shape whose option `debug_redact` is set, nested in itself in three ways."""
    file = descriptor_pb2.FileDescriptorProto(name="marked.proto", package="marked", syntax="proto3")
    message = file.message_type.add(name="Marked")
    for number, (name, (kind, label)) in enumerate(SHAPES.items(), 1):
        field = message.field.add(name=name, number=number, type=kind, label=label)
        field.options.debug_redact = True
    nested = {"type": FieldProto.TYPE_MESSAGE, "type_name": ".marked.Marked"}
    message.field.add(name="inner", number=10, label=FieldProto.LABEL_OPTIONAL, **nested)
    message.field.add(name="list", number=11, label=FieldProto.LABEL_REPEATED, **nested)
    message.field.add(name="open", number=12, type=FieldProto.TYPE_STRING, label=FieldProto.LABEL_OPTIONAL)
    entry = message.nested_type.add(name="MapEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=FieldProto.TYPE_STRING, label=FieldProto.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, label=FieldProto.LABEL_OPTIONAL, **nested)
    map_type = {"type": FieldProto.TYPE_MESSAGE, "type_name": ".marked.Marked.MapEntry"}
    message.field.add(name="map", number=13, label=FieldProto.LABEL_REPEATED, **map_type)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("marked.Marked"))


def test_a_message_with_nothing_but_a_marked_field_is_hidden() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="leaf.proto", package="leaf", syntax="proto3")
    field = file.message_type.add(name="Leaf").field.add(
        name="text", number=1, type=FieldProto.TYPE_STRING, label=FieldProto.LABEL_OPTIONAL
    )
    field.options.debug_redact = True
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("leaf.Leaf"))(text="TOKEN")
    hide(message)
    assert str(message) == 'text: "[redacted]"\n'


def test_marked_fields_are_hidden_at_any_depth(marked: type[Message]) -> None:
    def filled(**nested: object) -> Message:
        return marked(text="TOKEN", raw=b"TOKEN", number=424242, several=["TOKEN"], open="seen", **nested)

    message = filled(inner=filled(), list=[filled()], map={"a": filled(inner=filled())})
    hide(message)
    shown = str(message)
    assert "TOKEN" not in shown
    assert "424242" not in shown
    assert shown.count('open: "seen"') == 5
    assert shown.count('text: "[redacted]"') == 5


def test_a_marked_map_of_numbers_is_cleared_and_one_of_texts_keeps_its_keys() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="maps.proto", package="maps", syntax="proto3")
    message = file.message_type.add(name="Maps")
    for number, (name, kind) in enumerate((("numbers", FieldProto.TYPE_INT32), ("texts", FieldProto.TYPE_STRING)), 1):
        entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=FieldProto.TYPE_STRING, label=FieldProto.LABEL_OPTIONAL)
        entry.field.add(name="value", number=2, type=kind, label=FieldProto.LABEL_OPTIONAL)
        type_name = f".maps.Maps.{entry.name}"
        kinds = {"type": FieldProto.TYPE_MESSAGE, "type_name": type_name, "label": FieldProto.LABEL_REPEATED}
        message.field.add(name=name, number=number, **kinds).options.debug_redact = True
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made: Any = message_factory.GetMessageClass(pool.FindMessageTypeByName("maps.Maps"))
    shown = made(numbers={"a": 424242}, texts={"a": "TOKEN", "b": "TOKEN"})
    hide(shown)
    assert (dict(shown.numbers), dict(shown.texts)) == ({}, {"a": "[redacted]", "b": "[redacted]"})
