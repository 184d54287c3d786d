"""Every field of Envoy's external authorization and rate limit service, version 3, is one of ours with the same number,
or has a reason.

The published fields are those of xds-protos, which walks its descriptors in a process and an environment of its own:
ours may not be loaded beside that package.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest
from google.protobuf.descriptor import Descriptor

from gatewright.wire.external import ext_authz_pb2 as pb
from gatewright.wire.external import rate_limit_pb2 as rls
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
    "RateLimitRequest": (rls.RateLimitRequest.DESCRIPTOR, "1:domain 2:descriptors 3:hits_addend"),
    "RateLimitDescriptor": (rls.RateLimitDescriptor.DESCRIPTOR, "1:entries 2:limit 3:hits_addend"),
    "RateLimitDescriptor.Entry": (rls.RateLimitDescriptor.Entry.DESCRIPTOR, "1:key 2:value"),
    "RateLimitDescriptor.RateLimitOverride": (
        rls.RateLimitDescriptor.RateLimitOverride.DESCRIPTOR,
        "1:requests_per_unit 2:unit",
    ),
    "RateLimitResponse": (
        rls.RateLimitResponse.DESCRIPTOR,
        "1:overall_code 2:statuses 3:response_headers_to_add 4:request_headers_to_add 5:raw_body 6:dynamic_metadata"
        " 7:quota",
    ),
    "RateLimitResponse.RateLimit": (
        rls.RateLimitResponse.RateLimit.DESCRIPTOR,
        "1:requests_per_unit 2:unit 3:name",
    ),
    "RateLimitResponse.DescriptorStatus": (
        rls.RateLimitResponse.DescriptorStatus.DESCRIPTOR,
        "1:code 2:current_limit 3:limit_remaining 4:duration_until_reset 5:quota",
    ),
}

OF_ENVOY: dict[str, str] = {
    # message as above: where it is published, where not in envoy.service.auth.v3 or envoy.service.ratelimit.v3
    "Peer": "envoy.service.auth.v3.AttributeContext.Peer",
    "Address": "envoy.config.core.v3.Address",
    "SocketAddress": "envoy.config.core.v3.SocketAddress",
    "Request": "envoy.service.auth.v3.AttributeContext.Request",
    "HttpRequest": "envoy.service.auth.v3.AttributeContext.HttpRequest",
    "HeaderValue": "envoy.config.core.v3.HeaderValue",
    "Metadata": "envoy.config.core.v3.Metadata",
    "TLSSession": "envoy.service.auth.v3.AttributeContext.TLSSession",
    "Status": "google.rpc.Status",
    "HttpStatus": "envoy.type.v3.HttpStatus",
    "HeaderValueOption": "envoy.config.core.v3.HeaderValueOption",
    "QueryParameter": "envoy.config.core.v3.QueryParameter",
    **{
        name: f"envoy.extensions.common.ratelimit.v3.{name}"
        for name in ("RateLimitDescriptor", "RateLimitDescriptor.Entry", "RateLimitDescriptor.RateLimitOverride")
    },
    **{
        name: f"envoy.service.ratelimit.v3.{name}"
        for name in (
            *("RateLimitRequest", "RateLimitResponse"),
            *("RateLimitResponse.RateLimit", "RateLimitResponse.DescriptorStatus"),
        )
    },
}

WALK = """
import json, sys
from envoy.service.auth.v3 import external_auth_pb2
from envoy.service.ratelimit.v3 import rls_pb2
from google.protobuf import descriptor_pool
pool = descriptor_pool.Default()
def fields(name):
    return {each.name: each.number for each in pool.FindMessageTypeByName(name).fields}
def values(name):
    return {each.name: each.number for each in pool.FindEnumTypeByName(name).values}
json.dump({
    "fields": {name: fields(name) for name in json.load(sys.stdin)},
    "units": values("envoy.type.v3.RateLimitUnit"),
    "said": values("envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit"),
}, sys.stdout)
"""


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
    "RateLimitResponse.dynamic_metadata": "no variable of expressions has what a rate limit service says",
    "RateLimitResponse.quota": "a service may let a client answer by itself for a while; we ask about each request",
    "RateLimitResponse.DescriptorStatus.quota": "the same",
    "Metadata.typed_filter_metadata": "values of expressions are JSON and have no message type",
}


@pytest.mark.needs("xds-python")
def test_the_published_fields_are_all_of_them(tool: Callable[[str], str]) -> None:
    places = {name: OF_ENVOY.get(name, f"envoy.service.auth.v3.{name}") for name in PUBLISHED}
    done = subprocess.run(
        [tool("xds-python"), "-c", WALK],
        input=json.dumps(list(places.values())),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {name: found["fields"][place] for name, place in places.items()} == {
        name: fields(published) for name, (_, published) in PUBLISHED.items()
    }
    assert found["units"] == dict(rls.RateLimitUnit.items())
    assert found["said"] == dict(rls.RateLimitResponse.RateLimit.Unit.items())


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
    found = {message.full_name for each in (pb, rls) for message in each.DESCRIPTOR.message_types_by_name.values()}
    assert found <= named
