"""docs/attachment.md tells the truth: its table, its lint output, and what its example answers.

The example's folder goes through the control plane; its resources are merged as the page tells, and given to a proxy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.lint.lint import lint_paths
from dataplane.table.store import RESOURCE_TYPE, Change
from gatewright.attach.merge import Attached, Merged, merge
from gatewright.attach.places import ListenerPosition, key_of, rule_places
from gatewright.wire.v1 import policy_pb2, resource_pb2
from tests.fakes.memory_proxy import MemoryProxy
from tests.unit.translate.golden import World

FOLDER = "examples/policies"
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) \|", re.MULTILINE)


@pytest.fixture(scope="module")
def changes() -> list[Change]:
    """All that the control plane sends for the folder."""
    root = Path(__file__).parents[2]
    world = World()
    world.put("\n---\n".join(path.read_text() for path in sorted((root / FOLDER).glob("*.yaml"))))
    return [Change(type_url, name, data) for (_, type_url, name), data in world.resources.items()]


def policies(changes: list[Change]) -> Iterator[policy_pb2.Policy]:
    for change in changes:
        if change.type_url == RESOURCE_TYPE and change.name.startswith("policy/"):
            assert change.value is not None
            yield resource_pb2.Resource.FromString(change.value).policy


def met_by(rule: str, changes: list[Change]) -> Merged[str]:
    """The names of the policy objects that a rule of the example meets, by field."""
    places = [
        *ListenerPosition(("default", "edge"), "web").places(),
        *rule_places("HTTPRoute", "default", "shop", rule),
    ]
    found = []
    for policy in policies(changes):
        attached = {key_of(place) for place in policy.places}
        override = policy.inheritance == policy_pb2.INHERITANCE_OVERRIDE
        for level, place in places:
            if place in attached:
                name = str(policy.WhichOneof("field"))
                found.append(Attached(name, level, policy.order, override, policy.source.name))
    return merge(found)


def test_the_table_is_what_the_policies_come_to(root: Path, changes: list[Change]) -> None:
    text = (root / "docs/attachment.md").read_text().partition("What a request meets:")[2].partition("and what")[0]
    told = {
        field: (re.findall(r"`(\S+?)`", browse), re.findall(r"`(\S+?)`", pay))
        for field, browse, pay in ROW.findall(text)
    }
    met = [met_by(rule, changes).effective for rule in ("browse", "pay")]
    fields = {field for each in met for field in each}
    assert told == {
        camel(field): tuple([each.value for each in found.get(field, ())] for found in met) for field in fields
    }


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def test_lint_says_what_the_page_says(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    (shown,) = re.findall(r"^```text\n(.*?)\n```$", Path("docs/attachment.md").read_text(), re.MULTILINE | re.DOTALL)
    assert lint_paths([FOLDER]).text() == shown


@pytest.mark.parametrize(
    ("line", "headers", "status", "said"),
    [
        (b"GET / HTTP/1.1", b"", b"200", b"x-served-by: edge"),
        (b"GET / HTTP/1.1", b"origin: https://shop.example.com\r\n", b"200", b"https://shop.example.com"),
        (b"GET / HTTP/1.1", b"origin: https://www.example.com\r\n", b"200", b"x-served-by: edge"),
        (b"GET /internal HTTP/1.1", b"", b"403", b"authorization failed"),
        (b"GET /pay HTTP/1.1", b"", b"403", b"authorization failed"),
        (b"POST /pay HTTP/1.1", b"content-length: 0\r\n", b"200", b"x-served-by: edge"),
        (b"POST /pay HTTP/1.1", b"content-length: 0\r\norigin: https://evil.example\r\n", b"403", b"CSRF"),
    ],
)
def test_the_example_answers(changes: list[Change], line: bytes, headers: bytes, status: bytes, said: bytes) -> None:
    proxy = MemoryProxy()
    gone = [Change(RESOURCE_TYPE, key, None) for key in proxy.keys]
    for _ in proxy.applier.apply([*gone, *changes]):
        pass
    client = proxy.connect()
    client.send(line + b"\r\nhost: shop.example.com\r\n" + headers + b"\r\n")
    if status == b"200":
        proxy.upstream.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    assert client.received.split()[1] == status
    assert said in client.received
    allowed = re.findall(rb"access-control-allow-origin: (\S+)", client.received)
    assert allowed == ([b"https://shop.example.com"] if b"shop" in headers else [])
