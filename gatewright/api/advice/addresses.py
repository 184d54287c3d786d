"""Addresses and names of credentials that their fields take, and that nothing can be called: proxies refuse them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from pydantic import BaseModel

from gatewright.addresses import no_host, no_socket
from gatewright.api.backend.mcp_targets import McpTarget
from gatewright.api.backend.providers import AzureConfig, AzureOpenAIConfig, LLMProvider, ProviderFormatConfig
from gatewright.api.objects.gateway_backend import A2ABackend, StaticBackend
from gatewright.api.schema.fields import HEADER_NAME_PATTERN, HEADER_VALUE_PATTERN
from gatewright.api.text.problem import Advice
from gatewright.api.traffic.extraction import CookieLocation, HeaderLocation

_IS_TOKEN: Final = re.compile(HEADER_NAME_PATTERN).fullmatch
_IS_VALUE: Final = re.compile(HEADER_VALUE_PATTERN).fullmatch
_IS_TARGET: Final = re.compile(r"/[!-\x22\x24-~]*").fullmatch
"""Printable ASCII without "#"."""


def _refused(field: str, why: str) -> Iterator[Advice]:
    if why:
        yield Advice((field,), f"{why}: the proxy refuses it", "error")


def _host(backend: StaticBackend | A2ABackend | McpTarget | LLMProvider) -> Iterator[Advice]:
    if backend.host is not None:
        yield from _refused("host", no_host(backend.host))


def _socket(backend: StaticBackend) -> Iterator[Advice]:
    if backend.unix_path is not None:
        yield from _refused("unixPath", no_socket(backend.unix_path))


def _target(field: str, path: str | None) -> Iterator[Advice]:
    if path is not None and not _IS_TARGET(path):
        yield from _refused(field, "must begin with / and have no space, # or character beyond ASCII")


def _path(target: McpTarget | LLMProvider | ProviderFormatConfig) -> Iterator[Advice]:
    yield from _target("path", target.path)


def _path_prefix(provider: LLMProvider) -> Iterator[Advice]:
    yield from _target("pathPrefix", provider.path_prefix)


def _endpoint(config: AzureOpenAIConfig) -> Iterator[Advice]:
    yield from _refused("endpoint", no_host(config.host))


def _resource(config: AzureConfig) -> Iterator[Advice]:
    """A label of the host that is made of it."""
    yield from _refused("resourceName", no_host(config.resource_name))


def _cookie(location: CookieLocation) -> Iterator[Advice]:
    """RFC 6265 4.1.1: a token."""
    if not _IS_TOKEN(location.name):
        yield from _refused("name", "is no name of a cookie")


def _prefix(location: HeaderLocation) -> Iterator[Advice]:
    if location.prefix is not None and not _IS_VALUE(location.prefix):
        yield from _refused("prefix", "has a control character, which no header has")


ADDRESSES: Final[tuple[tuple[type[BaseModel], Callable[[Any], Iterator[Advice]]], ...]] = (
    (StaticBackend, _host),
    (StaticBackend, _socket),
    (A2ABackend, _host),
    (McpTarget, _host),
    (McpTarget, _path),
    (LLMProvider, _host),
    (LLMProvider, _path),
    (LLMProvider, _path_prefix),
    (ProviderFormatConfig, _path),
    (AzureOpenAIConfig, _endpoint),
    (AzureConfig, _resource),
    (CookieLocation, _cookie),
    (HeaderLocation, _prefix),
)
"""As the rows of `advice`."""
