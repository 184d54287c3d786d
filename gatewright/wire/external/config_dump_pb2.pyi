import datetime

from google.protobuf import any_pb2 as _any_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ClientResourceStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNKNOWN: _ClassVar[ClientResourceStatus]
    REQUESTED: _ClassVar[ClientResourceStatus]
    DOES_NOT_EXIST: _ClassVar[ClientResourceStatus]
    ACKED: _ClassVar[ClientResourceStatus]
    NACKED: _ClassVar[ClientResourceStatus]
    RECEIVED_ERROR: _ClassVar[ClientResourceStatus]
    TIMEOUT: _ClassVar[ClientResourceStatus]
UNKNOWN: ClientResourceStatus
REQUESTED: ClientResourceStatus
DOES_NOT_EXIST: ClientResourceStatus
ACKED: ClientResourceStatus
NACKED: ClientResourceStatus
RECEIVED_ERROR: ClientResourceStatus
TIMEOUT: ClientResourceStatus

class UpdateFailureState(_message.Message):
    __slots__ = ("failed_configuration", "last_update_attempt", "details", "version_info")
    FAILED_CONFIGURATION_FIELD_NUMBER: _ClassVar[int]
    LAST_UPDATE_ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    VERSION_INFO_FIELD_NUMBER: _ClassVar[int]
    failed_configuration: _any_pb2.Any
    last_update_attempt: _timestamp_pb2.Timestamp
    details: str
    version_info: str
    def __init__(self, failed_configuration: _Optional[_Union[_any_pb2.Any, _Mapping]] = ..., last_update_attempt: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., details: _Optional[str] = ..., version_info: _Optional[str] = ...) -> None: ...
