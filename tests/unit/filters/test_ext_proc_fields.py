"""Every field of Envoy's external processing, version 3, is one of ours with the same number, or has a reason.

The published fields are those of xds-protos 1.85.0. Ours may not be loaded beside that package in one process.
"""

from __future__ import annotations

import pytest
from google.protobuf.descriptor import Descriptor

from gatewright.wire.external import ext_proc_pb2 as pb

PUBLISHED: dict[str, tuple[Descriptor, str]] = {
    # message: ours, and the numbers and names of its fields
    "ProcessingRequest": (
        pb.ProcessingRequest.DESCRIPTOR,
        "2:request_headers 3:response_headers 4:request_body 5:response_body 6:request_trailers"
        " 7:response_trailers 8:metadata_context 9:attributes 10:observability_mode 11:protocol_config",
    ),
    "ProcessingResponse": (
        pb.ProcessingResponse.DESCRIPTOR,
        "1:request_headers 2:response_headers 3:request_body 4:response_body 5:request_trailers"
        " 6:response_trailers 7:immediate_response 8:dynamic_metadata 9:mode_override"
        " 10:override_message_timeout 11:request_drain",
    ),
    "HttpHeaders": (pb.HttpHeaders.DESCRIPTOR, "1:headers 2:attributes 3:end_of_stream"),
    "HttpBody": (
        pb.HttpBody.DESCRIPTOR,
        "1:body 2:end_of_stream 3:end_of_stream_without_message 4:grpc_message_compressed",
    ),
    "HttpTrailers": (pb.HttpTrailers.DESCRIPTOR, "1:trailers"),
    "HeadersResponse": (pb.HeadersResponse.DESCRIPTOR, "1:response"),
    "BodyResponse": (pb.BodyResponse.DESCRIPTOR, "1:response"),
    "TrailersResponse": (pb.TrailersResponse.DESCRIPTOR, "1:header_mutation"),
    "CommonResponse": (
        pb.CommonResponse.DESCRIPTOR,
        "1:status 2:header_mutation 3:body_mutation 4:trailers 5:clear_route_cache",
    ),
    "ImmediateResponse": (pb.ImmediateResponse.DESCRIPTOR, "1:status 2:headers 3:body 4:grpc_status 5:details"),
    "HeaderMutation": (pb.HeaderMutation.DESCRIPTOR, "1:set_headers 2:remove_headers"),
    "BodyMutation": (pb.BodyMutation.DESCRIPTOR, "1:body 2:clear_body 3:streamed_response"),
    "StreamedBodyResponse": (
        pb.StreamedBodyResponse.DESCRIPTOR,
        "1:body 2:end_of_stream 3:end_of_stream_without_message 4:grpc_message_compressed",
    ),
    "ProtocolConfiguration": (
        pb.ProtocolConfiguration.DESCRIPTOR,
        "1:request_body_mode 2:response_body_mode 3:send_body_without_waiting_for_header_response",
    ),
    "ProcessingMode": (
        pb.ProcessingMode.DESCRIPTOR,
        "1:request_header_mode 2:response_header_mode 3:request_body_mode 4:response_body_mode"
        " 5:request_trailer_mode 6:response_trailer_mode",
    ),
    "HeaderMap": (pb.HeaderMap.DESCRIPTOR, "1:headers"),
}

_GRPC = "a mode of bodies that `processingOptions` does not have"
WITHOUT: dict[str, str] = {
    "ProcessingRequest.observability_mode": "a server that is not asked, but shown, is a mirror",
    "ProcessingResponse.override_message_timeout": "off in Envoy's filter too, unless a bound is set for it",
    "ProcessingResponse.request_drain": "a call ends with its exchange",
    "HttpHeaders.attributes": "the older place of attributes, which Envoy does not fill any more",
    "HttpBody.end_of_stream_without_message": _GRPC,
    "HttpBody.grpc_message_compressed": _GRPC,
    "StreamedBodyResponse.end_of_stream_without_message": _GRPC,
    "StreamedBodyResponse.grpc_message_compressed": _GRPC,
    "CommonResponse.trailers": "Envoy does not act on it either",
    "CommonResponse.clear_route_cache": "before routing there is no route, and behind it none is chosen again",
    "ImmediateResponse.grpc_status": "the status of gRPC follows from the HTTP status (docs/grpc.md)",
    "ProtocolConfiguration.send_body_without_waiting_for_header_response": "of STREAMED, which is no option here",
}


def fields(published: str) -> dict[str, int]:
    return {name: int(number) for number, name in (each.split(":") for each in published.split())}


@pytest.mark.parametrize("message", PUBLISHED)
def test_fields_of_ext_proc_have_their_published_numbers(message: str) -> None:
    ours, published = PUBLISHED[message]
    assert {each.name: each.number for each in ours.fields}.items() <= fields(published).items()


def test_every_other_field_of_ext_proc_has_a_reason() -> None:
    known = {(message, each.name) for message, (ours, _) in PUBLISHED.items() for each in ours.fields}
    every = {(message, name) for message, (_, published) in PUBLISHED.items() for name in fields(published)}
    assert sorted(".".join(each) for each in every - known) == sorted(WITHOUT)


def test_all_our_messages_of_ext_proc_are_looked_at() -> None:
    named = {ours.full_name for ours, _ in PUBLISHED.values()}
    found = {message.full_name for message in pb.DESCRIPTOR.message_types_by_name.values()}
    assert found <= named


def test_modes_have_their_published_numbers() -> None:
    modes = pb.ProcessingMode.BodySendMode.items()
    assert modes == [
        *(("NONE", 0), ("STREAMED", 1), ("BUFFERED", 2), ("BUFFERED_PARTIAL", 3), ("FULL_DUPLEX_STREAMED", 4)),
        ("GRPC", 5),
    ]
    assert pb.ProcessingMode.HeaderSendMode.items() == [("DEFAULT", 0), ("SEND", 1), ("SKIP", 2)]
