"""Policies about connections of a newer language: what is not known is refused."""

from __future__ import annotations

from typing import Any

import pytest

from dataplane.chain.filter import Env, Refused
from dataplane.filters.frontend import frontend_http, frontend_tcp, proxy_protocol
from dataplane.http.connection_rules import ConnectionRules, strictest
from dataplane.net.keepalive import Keepalive
from dataplane.net.proxy_header import V1, V2
from gatewright.wire.v1 import connection_pb2, frontend_pb2

ENV = Env(clock=lambda: 0.0, random=lambda: 0.0)


@pytest.mark.parametrize(
    ("build", "config", "message"),
    [
        (proxy_protocol.build, connection_pb2.FrontendProxyProtocol(version=9), "version: 9 is unknown"),  # type: ignore[arg-type]
        (proxy_protocol.build, connection_pb2.FrontendProxyProtocol(mode=9), "mode: 9 is unknown"),  # type: ignore[arg-type]
        (frontend_http.build, frontend_pb2.FrontendHttp(http1_header_case=9), "http1HeaderCase: 9 is unknown"),  # type: ignore[arg-type]
        (frontend_http.build, frontend_pb2.FrontendHttp(http2_frame_size=16_383), "http2FrameSize: 16383 is not"),
        (frontend_http.build, frontend_pb2.FrontendHttp(http2_frame_size=2**24), "http2FrameSize: 16777216 is not"),
    ],
)
def test_what_is_not_known_is_refused(build: Any, config: Any, message: str) -> None:
    with pytest.raises(Refused, match=message):
        build(config, ENV)


def test_what_is_unset_is_as_the_specification_says() -> None:
    rules = proxy_protocol.build(connection_pb2.FrontendProxyProtocol(), ENV)
    assert rules.is_strict and rules.reader.signatures == (V2,)
    both = connection_pb2.PROXY_PROTOCOL_VERSION_ALL
    assert set(proxy_protocol.build(connection_pb2.FrontendProxyProtocol(version=both), ENV).reader.signatures) == {
        V1,
        V2,
    }
    assert frontend_tcp.build(connection_pb2.FrontendTcp(), ENV) == Keepalive(9, 180, 180)
    assert frontend_http.build(frontend_pb2.FrontendHttp(), ENV).connection == ConnectionRules()


@pytest.mark.parametrize("size", [16_384, 16_385, 2**24 - 1])
def test_frame_sizes_of_rfc_9113_are_taken(size: int) -> None:
    assert frontend_http.build(frontend_pb2.FrontendHttp(http2_frame_size=size), ENV).connection.frame_size == size


def test_the_strictest_of_several() -> None:
    one = ConnectionRules(idle_timeout=5, stream_window=100, ping_interval=30)
    other = ConnectionRules(idle_timeout=9, stream_window=10, max_duration=60, lowers_names=True)
    assert strictest([]) == strictest([ConnectionRules()]) == ConnectionRules()
    assert strictest([one, one]) is one
    assert strictest([one, other]) == ConnectionRules(
        idle_timeout=5, stream_window=10, ping_interval=30, max_duration=60, lowers_names=True
    )
