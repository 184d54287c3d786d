"""The revision that a resource asks for: a proxy that is older must not take it, and no other is kept from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import Message

from gatewright import revisions
from gatewright.wire.v1 import backend_pb2, listener_pb2, policy_pb2, resource_pb2, revision_pb2, route_pb2

Field = descriptor_pb2.FieldDescriptorProto
PACKAGE: Final = "gatewright.toys"


def field(message: descriptor_pb2.DescriptorProto, name: str, since: int = 0, of: str = "", many: bool = False) -> None:
    made = message.field.add(name=name, number=len(message.field) + 1)
    made.label = Field.LABEL_REPEATED if many else Field.LABEL_OPTIONAL
    made.type = Field.TYPE_MESSAGE if of else Field.TYPE_STRING
    if of:
        made.type_name = f".{PACKAGE}.{of}"
    if since:
        made.options.Extensions[revision_pb2.since] = since


def toy() -> type[Message]:
    """A tree whose leaf has a field of revision 3: reached directly, in a list, in a map and by recursion."""
    file = descriptor_pb2.FileDescriptorProto(name="toys.proto", package=PACKAGE, syntax="proto3")
    leaf, tree = file.message_type.add(name="Leaf"), file.message_type.add(name="Tree")
    field(leaf, "old")
    field(leaf, "new", since=3)
    entry = tree.nested_type.add(name="NamedEntry")
    entry.options.map_entry = True
    field(entry, "key")
    field(entry, "value", of="Leaf")
    texts = tree.nested_type.add(name="TextsEntry")
    texts.options.map_entry = True
    field(texts, "key")
    field(texts, "value")
    field(tree, "one", of="Leaf")
    field(tree, "many", of="Leaf", many=True)
    field(tree, "named", of="Tree.NamedEntry", many=True)
    field(tree, "texts", of="Tree.TextsEntry", many=True)
    field(tree, "inner", of="Tree")
    field(tree, "young", since=2)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.Tree"))


TREE = toy()


@pytest.mark.parametrize(
    ("text", "revision"),
    [
        ("", 1),
        ("one { old: 'a' }", 1),
        ("texts { key: 'a' value: 'b' }", 1),
        ("young: 'a'", 2),
        ("one { new: 'a' }", 3),
        ("young: 'a' one { new: 'a' }", 3),
        ("many { old: 'a' } many { new: 'a' }", 3),
        ("named { key: 'a' value { new: 'a' } }", 3),
        ("inner { inner { one { new: 'a' } } }", 3),
        ("inner { inner { one { old: 'a' } } }", 1),
    ],
)
def test_a_message_needs_the_newest_revision_of_what_is_set_in_it(text: str, revision: int) -> None:
    assert revisions.needed(text_format.Parse(text, TREE())) == revision


def test_the_newest_revision_of_a_schema_is_that_of_its_newest_field() -> None:
    assert revisions.newest(TREE.DESCRIPTOR) == 3
    assert revisions.newest(TREE.DESCRIPTOR.fields_by_name["one"].message_type) == 3
    assert revisions.newest(resource_pb2.Resource.DESCRIPTOR) == revisions.NEWEST


def test_resources_of_the_first_revision_ask_for_that() -> None:
    kinds = (
        {"listener": listener_pb2.Listener(name="http")},
        {"route": route_pb2.Route(rule="a")},
        {"policy": policy_pb2.Policy(order="a")},
        {"backend": backend_pb2.Backend(refused="no", policies=[policy_pb2.Policy(order="a")])},
    )
    for kind in kinds:
        made = revisions.resource("some/key", **kind)
        assert (made.key, made.min_revision) == ("some/key", 1)
        assert {name: getattr(made, name) for name in kind} == kind


# --- what was released stays


def recorded(root: Path) -> descriptor_pb2.FileDescriptorSet:
    return descriptor_pb2.FileDescriptorSet.FromString((root / "proto/baseline.binpb").read_bytes())


def fields(messages: Iterable[descriptor_pb2.DescriptorProto], path: str = "") -> Iterator[tuple[str, int]]:
    """The full name of each field, with its option."""
    for message in messages:
        for each in message.field:
            yield f"{path}{message.name}.{each.name}", each.options.Extensions[revision_pb2.since]
        yield from fields(message.nested_type, f"{path}{message.name}.")


def of_files(files: Iterable[descriptor_pb2.FileDescriptorProto]) -> dict[str, int]:
    ours = (file for file in files if file.package == "gatewright.wire.v1")
    return dict(field for file in ours for field in fields(file.message_type))


def now() -> list[descriptor_pb2.FileDescriptorProto]:
    """The files that Resource is made of."""
    found: dict[str, descriptor_pb2.FileDescriptorProto] = {}
    waiting = [resource_pb2.DESCRIPTOR]
    while waiting:
        file = waiting.pop()
        if file.name not in found:
            found[file.name] = made = descriptor_pb2.FileDescriptorProto()
            file.CopyToProto(made)
            waiting += file.dependencies
    return list(found.values())


def wrong(before: dict[str, int], after: dict[str, int], *, is_released: bool) -> list[str]:
    """What is wrong with the option of a field. Until something is released nobody has an older proxy, and no field has
    one. After that a field keeps what it was released with, and a newer one says what older proxies may do: 1, overlook
    it; one above the newest that was released, refuse what sets it."""
    next_one = max(1, *before.values()) + 1
    allowed = (1, next_one) if is_released else (0,)
    return [
        f"{name}: since = {since}; it must be {' or '.join(map(str, known))}"
        for name, since in after.items()
        if since not in (known := (before[name],) if name in before else allowed)
    ]


def test_fields_that_the_baseline_has_keep_their_revision_and_others_say_theirs(root: Path) -> None:
    before, after = of_files(recorded(root).file), of_files(now())
    assert len(after) > 200 and len(before) > 200
    is_released = re.search(r"^## \[\d", (root / "CHANGELOG.md").read_text(), re.MULTILINE) is not None
    assert wrong(before, after, is_released=is_released) == []


@pytest.mark.parametrize(
    ("since", "is_released", "is_wrong"),
    [
        ({"A.old": 0}, True, False),
        ({"A.old": 1}, True, True),
        ({"A.later": 2}, True, False),
        ({"A.later": 3}, True, True),
        ({"A.new": 0}, True, True),  # nobody has thought of it
        ({"A.new": 1}, True, False),
        ({"A.new": 2}, True, True),
        ({"A.new": 3}, True, False),
        ({"A.new": 4}, True, True),
        ({"A.new": 0}, False, False),
        ({"A.new": 1}, False, True),
        ({"A.new": 3}, False, True),
    ],
)
def test_what_a_field_may_say(since: dict[str, int], is_released: bool, is_wrong: bool) -> None:
    assert bool(wrong({"A.old": 0, "A.later": 2}, since, is_released=is_released)) is is_wrong
