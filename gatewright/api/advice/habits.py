"""Warnings about what is valid here and means something else in another proxy: `/shop/*`, `10m`, `$1`.

Rows of `advice`, which lint shows; no status depends on them. What such users look for is in docs/migrating.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from pydantic import BaseModel

from gatewright.api.advice.foreign import ANNOTATIONS
from gatewright.api.routes.http_filters import HTTPPathModifier
from gatewright.api.routes.http_route import HTTPHeaderMatch, HTTPPathMatch, HTTPQueryParamMatch
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.text.problem import Advice
from gatewright.api.traffic.buffer import BufferedBody
from gatewright.api.traffic.ext_auth import ExtAuthBody


def _path_that_fits_nothing(match: HTTPPathMatch) -> Iterator[Advice]:
    if match.type == "RegularExpression":
        if _NO_PATH_BEGINS_SO(match.value):
            yield Advice(("value",), 'fits no path: paths begin with "/", and the whole path must match')
    elif match.value.endswith("*"):
        cure = "leave it out, a prefix takes all below it" if match.type == "PathPrefix" else "write type: PathPrefix"
        yield Advice(("value",), f'means the character "*": {cure}')


def _slashes_around_expression(match: HTTPHeaderMatch | HTTPQueryParamMatch) -> Iterator[Advice]:
    if match.type == "RegularExpression" and _SLASHES_AROUND(match.value):
        yield Advice(("value",), "has slashes that belong to the expression: leave them out, write (?i) instead of /i")


def _groups_in_path(modifier: HTTPPathModifier) -> Iterator[Advice]:
    for field, text in (
        ("replaceFullPath", modifier.replace_full_path),
        ("replacePrefixMatch", modifier.replace_prefix_match),
    ):
        if text is not None and (found := _GROUP(text)):
            cure = 'a GatewayPolicy\'s transformation can set ":path" with regexReplace'
            yield Advice((field,), f'"{found[0]}" refers to no group and is sent as it is: {cure}')


_NO_PATH_BEGINS_SO: Final = re.compile(r"\^?[~\w]").match
_SLASHES_AROUND: Final = re.compile(r"/.+/i?").fullmatch
_GROUP: Final = re.compile(r"\$(?:[0-9]|\{[0-9]\})|\\[0-9]").search


def _settings_of_other_controllers(item: KubeObject) -> Iterator[Advice]:
    for name in item.metadata.annotations:
        if name.startswith(ANNOTATIONS):
            yield Advice(("metadata", "annotations", name), "has no effect: settings of other controllers are not read")


def _thousandths_of_a_byte(body: BufferedBody | ExtAuthBody) -> Iterator[Advice]:
    """Kubernetes' `m` is milli; nginx's is 2**20."""
    field, size = ("maxBytes", body.max_bytes) if isinstance(body, BufferedBody) else ("maxSize", body.max_size)
    if isinstance(size, str) and size.endswith("m"):
        yield Advice((field,), f"is {size[:-1]} thousandths of a byte: write {size[:-1]}Mi or {size[:-1]}M")


HABITS: Final[tuple[tuple[type[BaseModel], Callable[[Any], Iterator[Advice]]], ...]] = (
    (HTTPPathMatch, _path_that_fits_nothing),
    (HTTPHeaderMatch, _slashes_around_expression),
    (HTTPQueryParamMatch, _slashes_around_expression),
    (HTTPPathModifier, _groups_in_path),
    (KubeObject, _settings_of_other_controllers),
    (BufferedBody, _thousandths_of_a_byte),
    (ExtAuthBody, _thousandths_of_a_byte),
)
"""As the rows of `advice`."""
