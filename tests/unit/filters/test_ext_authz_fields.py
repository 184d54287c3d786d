"""Every field of Envoy's external authorization, version 3, is one of ours with the same number, or has a reason.

The published fields are those of xds-protos 1.85.0. Ours may not be loaded beside that package in one process.
"""

from __future__ import annotations

import pytest
from google.protobuf.descriptor import Descriptor

from gatewright.wire.external import ext_authz_pb2 as pb
from gatewright.wire.external.status_pb2 import Status

PUBLISHED: dict[str, tuple[Descriptor, str]] = {
    # message: ours, and the numbers and names of its fields
    "CheckRequest": (pb.CheckRequest.DESCRIPTOR, "1:attributes"),
    "AttributeContext": (
        pb.AttributeContext.DESCRIPTOR,
        "1:source 2:destination 4:request 10:context_extensions 11:metadata_context 12:tls_session"
        " 13:route_metadata_context",
    ),
    "Peer": (pb.AttributeContext.Peer.DESCRIPTOR, "1:address 2:service 3:labels 4:principal 5:certificate"),
    "Address": (pb.Address.DESCRIPTOR, "1:socket_address 2:pipe 3:envoy_internal_address"),
    "SocketAddress": (
        pb.SocketAddress.DESCRIPTOR,
        "1:protocol 2:address 3:port_value 4:named_port 5:resolver_name 6:ipv4_compat 7:network_namespace_filepath",
    ),
    "Request": (pb.AttributeContext.Request.DESCRIPTOR, "1:time 2:http"),
    "HttpRequest": (
        pb.AttributeContext.HttpRequest.DESCRIPTOR,
        "1:id 2:method 3:headers 4:path 5:host 6:scheme 7:query 8:fragment 9:size 10:protocol 11:body 12:raw_body"
        " 13:header_map",
    ),
    "HeaderValue": (pb.HeaderValue.DESCRIPTOR, "1:key 2:value 3:raw_value"),
    "Metadata": (pb.Metadata.DESCRIPTOR, "1:filter_metadata 2:typed_filter_metadata"),
    "TLSSession": (pb.AttributeContext.TlsSession.DESCRIPTOR, "1:sni"),
    "CheckResponse": (
        pb.CheckResponse.DESCRIPTOR,
        "1:status 2:denied_response 3:ok_response 4:dynamic_metadata 5:error_response",
    ),
    "Status": (Status.DESCRIPTOR, "1:code 2:message 3:details"),
    "DeniedHttpResponse": (pb.DeniedHttpResponse.DESCRIPTOR, "1:status 2:headers 3:body"),
    "HttpStatus": (pb.HttpStatus.DESCRIPTOR, "1:code"),
    "HeaderValueOption": (
        pb.HeaderValueOption.DESCRIPTOR,
        "1:header 2:append 3:append_action 4:keep_empty_value",
    ),
    "OkHttpResponse": (
        pb.OkHttpResponse.DESCRIPTOR,
        "2:headers 3:dynamic_metadata 5:headers_to_remove 6:response_headers_to_add 7:query_parameters_to_set"
        " 8:query_parameters_to_remove",
    ),
    "QueryParameter": (pb.QueryParameter.DESCRIPTOR, "1:key 2:value"),
}

_ADDRESS = "clients and listeners are addresses of IP and ports"
WITHOUT: dict[str, str] = {
    "AttributeContext.route_metadata_context": "routes have no metadata that a filter could be told to send",
    "Peer.service": "the name of a service node of a mesh, which clients of a gateway have not",
    "Peer.labels": "labels of the same",
    "Address.pipe": _ADDRESS,
    "Address.envoy_internal_address": _ADDRESS,
    "SocketAddress.protocol": "its default, TCP: requests of HTTP/1.1 and HTTP/2 come over nothing else",
    "SocketAddress.named_port": _ADDRESS,
    "SocketAddress.resolver_name": _ADDRESS,
    "SocketAddress.ipv4_compat": _ADDRESS,
    "SocketAddress.network_namespace_filepath": _ADDRESS,
    "HttpRequest.query": "always empty by its description: the query is part of `path`",
    "HttpRequest.fragment": "never sent by clients (RFC 9110 4.2.4)",
    "HttpRequest.header_map": "in place of `headers` by a setting of Envoy's filter that extAuth has not",
    "Metadata.typed_filter_metadata": "values of expressions are JSON and have no message type",
}


def fields(published: str) -> dict[str, int]:
    return {name: int(number) for number, name in (each.split(":") for each in published.split())}


@pytest.mark.parametrize("message", PUBLISHED)
def test_fields_have_their_published_numbers(message: str) -> None:
    ours, published = PUBLISHED[message]
    assert {each.name: each.number for each in ours.fields}.items() <= fields(published).items()


def test_every_other_field_has_a_reason() -> None:
    known = {(message, each.name) for message, (ours, _) in PUBLISHED.items() for each in ours.fields}
    every = {(message, name) for message, (_, published) in PUBLISHED.items() for name in fields(published)}
    assert sorted(".".join(each) for each in every - known) == sorted(WITHOUT)


def test_all_our_messages_are_looked_at() -> None:
    named = {ours.full_name for ours, _ in PUBLISHED.values()}
    found = {message.full_name for message in pb.DESCRIPTOR.message_types_by_name.values()}
    assert found <= named
