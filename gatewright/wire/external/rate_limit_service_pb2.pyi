from gatewright.wire.external import rate_limit_pb2 as _rate_limit_pb2
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor
