from gatewright.wire.v1 import ai_pb2 as _ai_pb2
from gatewright.wire.v1 import backend_pb2 as _backend_pb2
from gatewright.wire.v1 import bind_pb2 as _bind_pb2
from gatewright.wire.v1 import gateway_pb2 as _gateway_pb2
from gatewright.wire.v1 import listener_pb2 as _listener_pb2
from gatewright.wire.v1 import policy_pb2 as _policy_pb2
from gatewright.wire.v1 import route_pb2 as _route_pb2
from gatewright.wire.v1 import secret_pb2 as _secret_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Resource(_message.Message):
    __slots__ = ("key", "min_revision", "gateway", "bind", "listener", "route", "tcp_route", "udp_route", "backend", "secret", "policy", "prices", "mesh")
    KEY_FIELD_NUMBER: _ClassVar[int]
    MIN_REVISION_FIELD_NUMBER: _ClassVar[int]
    GATEWAY_FIELD_NUMBER: _ClassVar[int]
    BIND_FIELD_NUMBER: _ClassVar[int]
    LISTENER_FIELD_NUMBER: _ClassVar[int]
    ROUTE_FIELD_NUMBER: _ClassVar[int]
    TCP_ROUTE_FIELD_NUMBER: _ClassVar[int]
    UDP_ROUTE_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    MESH_FIELD_NUMBER: _ClassVar[int]
    key: str
    min_revision: int
    gateway: _gateway_pb2.Gateway
    bind: _bind_pb2.Bind
    listener: _listener_pb2.Listener
    route: _route_pb2.Route
    tcp_route: _route_pb2.TcpRoute
    udp_route: _route_pb2.UdpRoute
    backend: _backend_pb2.Backend
    secret: _secret_pb2.Secret
    policy: _policy_pb2.Policy
    prices: _ai_pb2.Prices
    mesh: _gateway_pb2.Mesh
    def __init__(self, key: _Optional[str] = ..., min_revision: _Optional[int] = ..., gateway: _Optional[_Union[_gateway_pb2.Gateway, _Mapping]] = ..., bind: _Optional[_Union[_bind_pb2.Bind, _Mapping]] = ..., listener: _Optional[_Union[_listener_pb2.Listener, _Mapping]] = ..., route: _Optional[_Union[_route_pb2.Route, _Mapping]] = ..., tcp_route: _Optional[_Union[_route_pb2.TcpRoute, _Mapping]] = ..., udp_route: _Optional[_Union[_route_pb2.UdpRoute, _Mapping]] = ..., backend: _Optional[_Union[_backend_pb2.Backend, _Mapping]] = ..., secret: _Optional[_Union[_secret_pb2.Secret, _Mapping]] = ..., policy: _Optional[_Union[_policy_pb2.Policy, _Mapping]] = ..., prices: _Optional[_Union[_ai_pb2.Prices, _Mapping]] = ..., mesh: _Optional[_Union[_gateway_pb2.Mesh, _Mapping]] = ...) -> None: ...
