from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TlsVersion(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TLS_VERSION_UNSPECIFIED: _ClassVar[TlsVersion]
    TLS_VERSION_1_2: _ClassVar[TlsVersion]
    TLS_VERSION_1_3: _ClassVar[TlsVersion]

class CipherSuite(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CIPHER_SUITE_UNSPECIFIED: _ClassVar[CipherSuite]
    CIPHER_SUITE_TLS13_AES_256_GCM_SHA384: _ClassVar[CipherSuite]
    CIPHER_SUITE_TLS13_AES_128_GCM_SHA256: _ClassVar[CipherSuite]
    CIPHER_SUITE_TLS13_CHACHA20_POLY1305_SHA256: _ClassVar[CipherSuite]
    CIPHER_SUITE_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: _ClassVar[CipherSuite]
    CIPHER_SUITE_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: _ClassVar[CipherSuite]
    CIPHER_SUITE_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: _ClassVar[CipherSuite]
    CIPHER_SUITE_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: _ClassVar[CipherSuite]
    CIPHER_SUITE_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: _ClassVar[CipherSuite]
    CIPHER_SUITE_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: _ClassVar[CipherSuite]

class KeyExchangeGroup(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KEY_EXCHANGE_GROUP_UNSPECIFIED: _ClassVar[KeyExchangeGroup]
    KEY_EXCHANGE_GROUP_X25519: _ClassVar[KeyExchangeGroup]
    KEY_EXCHANGE_GROUP_P_256: _ClassVar[KeyExchangeGroup]
    KEY_EXCHANGE_GROUP_P_384: _ClassVar[KeyExchangeGroup]
    KEY_EXCHANGE_GROUP_X25519_MLKEM768: _ClassVar[KeyExchangeGroup]

class TlsMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TLS_MODE_UNSPECIFIED: _ClassVar[TlsMode]
    TLS_MODE_TERMINATE: _ClassVar[TlsMode]
    TLS_MODE_PASSTHROUGH: _ClassVar[TlsMode]

class ClientValidationMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CLIENT_VALIDATION_MODE_UNSPECIFIED: _ClassVar[ClientValidationMode]
    CLIENT_VALIDATION_MODE_ALLOW_VALID_ONLY: _ClassVar[ClientValidationMode]
    CLIENT_VALIDATION_MODE_ALLOW_INSECURE_FALLBACK: _ClassVar[ClientValidationMode]
TLS_VERSION_UNSPECIFIED: TlsVersion
TLS_VERSION_1_2: TlsVersion
TLS_VERSION_1_3: TlsVersion
CIPHER_SUITE_UNSPECIFIED: CipherSuite
CIPHER_SUITE_TLS13_AES_256_GCM_SHA384: CipherSuite
CIPHER_SUITE_TLS13_AES_128_GCM_SHA256: CipherSuite
CIPHER_SUITE_TLS13_CHACHA20_POLY1305_SHA256: CipherSuite
CIPHER_SUITE_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: CipherSuite
CIPHER_SUITE_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: CipherSuite
CIPHER_SUITE_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: CipherSuite
CIPHER_SUITE_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: CipherSuite
CIPHER_SUITE_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: CipherSuite
CIPHER_SUITE_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: CipherSuite
KEY_EXCHANGE_GROUP_UNSPECIFIED: KeyExchangeGroup
KEY_EXCHANGE_GROUP_X25519: KeyExchangeGroup
KEY_EXCHANGE_GROUP_P_256: KeyExchangeGroup
KEY_EXCHANGE_GROUP_P_384: KeyExchangeGroup
KEY_EXCHANGE_GROUP_X25519_MLKEM768: KeyExchangeGroup
TLS_MODE_UNSPECIFIED: TlsMode
TLS_MODE_TERMINATE: TlsMode
TLS_MODE_PASSTHROUGH: TlsMode
CLIENT_VALIDATION_MODE_UNSPECIFIED: ClientValidationMode
CLIENT_VALIDATION_MODE_ALLOW_VALID_ONLY: ClientValidationMode
CLIENT_VALIDATION_MODE_ALLOW_INSECURE_FALLBACK: ClientValidationMode

class ClientValidation(_message.Message):
    __slots__ = ("mode", "authorities", "revocations", "trust_domains")
    MODE_FIELD_NUMBER: _ClassVar[int]
    AUTHORITIES_FIELD_NUMBER: _ClassVar[int]
    REVOCATIONS_FIELD_NUMBER: _ClassVar[int]
    TRUST_DOMAINS_FIELD_NUMBER: _ClassVar[int]
    mode: ClientValidationMode
    authorities: _containers.RepeatedScalarFieldContainer[str]
    revocations: _containers.RepeatedScalarFieldContainer[str]
    trust_domains: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, mode: _Optional[_Union[ClientValidationMode, str]] = ..., authorities: _Optional[_Iterable[str]] = ..., revocations: _Optional[_Iterable[str]] = ..., trust_domains: _Optional[_Iterable[str]] = ...) -> None: ...

class ListenerTls(_message.Message):
    __slots__ = ("mode", "certificates", "client_validation")
    MODE_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATES_FIELD_NUMBER: _ClassVar[int]
    CLIENT_VALIDATION_FIELD_NUMBER: _ClassVar[int]
    mode: TlsMode
    certificates: _containers.RepeatedScalarFieldContainer[str]
    client_validation: ClientValidation
    def __init__(self, mode: _Optional[_Union[TlsMode, str]] = ..., certificates: _Optional[_Iterable[str]] = ..., client_validation: _Optional[_Union[ClientValidation, _Mapping]] = ...) -> None: ...
