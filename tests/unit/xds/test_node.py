"""Identities that nodes claim."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from controlplane.xds import listeners
from controlplane.xds.node import Identity, Peer, ProtocolError, identify
from gatewright.wire.external import node_pb2


def test_identity() -> None:
    node = node_pb2.Node(id="shop/my.gateway-1/web-7f9c/0", cluster="shop/my.gateway-1")
    assert identify(node) == Identity("shop/my.gateway-1", "web-7f9c/0")
    assert identify(node).node_id == node.id
    assert identify(node_pb2.Node(id="a/b/c")) == Identity("a/b", "c")


MALFORMED = ["", "shop", "shop/web", "shop/web/", "/web/one", "shop//one", "Shop/web/one", "shop/web/a b", "a/b/c\n"]


@pytest.mark.parametrize("node_id", [*MALFORMED, "../web/one", "shop/web/" + "x" * 300, "a" * 300 + "/web/one"])
def test_malformed(node_id: str) -> None:
    with pytest.raises(ProtocolError, match="namespace/gateway/instance"):
        identify(node_pb2.Node(id=node_id))


def test_cluster_of_another_gateway() -> None:
    with pytest.raises(ProtocolError, match="different Gateways"):
        identify(node_pb2.Node(id="shop/web/one", cluster="shop/other"))


def test_peer_does_not_print_tokens() -> None:
    assert "secret" not in repr(Peer("ipv4:127.0.0.1:5", False, (("authorization", "Bearer secret"),)))


def test_an_address_of_ipv6_has_its_brackets() -> None:
    call = SimpleNamespace(peer=lambda: "ipv6:%5B::1%5D:47410", invocation_metadata=tuple, auth_context=dict)
    assert listeners.peer(call).address == "ipv6:[::1]:47410"  # type: ignore[arg-type]
