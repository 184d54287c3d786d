"""HTTPRoute, Gateway API 1.7: every field of the standard channel and those of the experimental one that we read.

What the API server would refuse is refused here, and regular expressions that no RE2 engine takes. References,
attachment and precedence are the translator's matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Final, Literal

import re2
from pydantic import Field, PrivateAttr

from gatewright.api.routes.http_filters import HTTPPathModifier, HTTPRouteFilter, filters_agree
from gatewright.api.routes.session_persistence import SessionPersistence
from gatewright.api.schema import duration
from gatewright.api.schema.fields import Duration, HeaderName, HeaderValue, Hostname, Integer, SectionName
from gatewright.api.schema.metadata import KubeObject
from gatewright.api.schema.model import Broken, Model, RuledModel, UnreadRule, unique
from gatewright.api.schema.references import BackendObjectReference, ParentReference
from gatewright.regexes import prices

_PATH_CHARACTERS = re2.compile(r"(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+")
_PATH_FORBIDDEN: Final = ("//", "/./", "/../", "%2f", "%2F", "#")
_PATH_ENDINGS: Final = ("/..", "/.")
_QUIET = re2.Options()
_QUIET.log_errors = False

MAX_MATCHES: Final = 128
"""Matches of all rules of one route together."""


def regex_rule(pattern: str, path: tuple[str | int, ...]) -> Iterator[Broken]:
    """A rule of fields that hold a regular expression for a whole value: RE2 must take it, and it must not take too
    long for a short value (`regexes.prices`)."""

    def broken(size: int) -> str:
        is_costly = prices.of_match(pattern, size) * prices.SHORT > prices.MOST
        return prices.too_costly(prices.SHORT) if is_costly else ""

    yield from _regex_within(pattern, path, broken)


def searched_regex_rule(pattern: str, path: tuple[str | int, ...], seen: int) -> Iterator[Broken]:
    """The same of fields whose regular expression is looked for in long texts, in `seen` bytes at a time."""

    def broken(size: int) -> str:
        is_costly = prices.of_search(pattern, size) * seen > prices.MOST_OF_SEARCH
        return prices.too_costly(seen) if is_costly else ""

    yield from _regex_within(pattern, path, broken)


def _regex_within(pattern: str, path: tuple[str | int, ...], broken: Callable[[int], str]) -> Iterator[Broken]:
    """`broken`: what is wrong with a pattern of so many instructions, or ""."""
    try:
        problem = broken(re2.compile(pattern, options=_QUIET)._regexp.ProgramSize())
        if problem:
            yield Broken(path, problem)
    except re2.error as failure:
        reason = failure.args[0]
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        yield Broken(path, f"must be a regular expression in RE2 syntax: {text}")


class HTTPPathMatch(RuledModel):
    """Gateway API HTTPPathMatch; default: prefix `/`."""

    type: Literal["Exact", "PathPrefix", "RegularExpression"] = "PathPrefix"
    """How the path is compared."""
    value: Annotated[str, Field(max_length=1024)] = "/"
    """The path, the prefix or the regular expression."""

    def broken_rules(self) -> Iterator[Broken]:
        if self.type == "RegularExpression":
            yield from regex_rule(self.value, ("value",))
            return
        if not self.value.startswith("/"):
            yield Broken(("value",), f'must start with "/" when type is {self.type}')
        if not _PATH_CHARACTERS.fullmatch(self.value):
            yield Broken(("value",), "must contain only characters of a URL path (RFC 3986), others percent-encoded")
        for part in _PATH_FORBIDDEN:
            if part in self.value:
                yield Broken(("value",), f'must not contain "{part}"')
        for ending in _PATH_ENDINGS:
            if self.value.endswith(ending):
                yield Broken(("value",), f'must not end with "{ending}"')


class HTTPHeaderMatch(RuledModel):
    """Gateway API HTTPHeaderMatch."""

    type: Literal["Exact", "RegularExpression"] = "Exact"
    """How the value is compared."""
    name: HeaderName
    """Name of the header; letter case does not matter."""
    value: HeaderValue
    """The value, or a regular expression in RE2 syntax."""

    gateway_only = "that a text is a regular expression: CEL can use one, not ask whether it is one"

    def broken_rules(self) -> Iterator[Broken]:
        if self.type == "RegularExpression":
            yield from regex_rule(self.value, ("value",))


class HTTPQueryParamMatch(RuledModel):
    """Gateway API HTTPQueryParamMatch."""

    type: Literal["Exact", "RegularExpression"] = "Exact"
    """How the value is compared."""
    name: HeaderName
    """Name of the parameter."""
    value: Annotated[str, Field(min_length=1, max_length=1024)]
    """The value, or a regular expression in RE2 syntax."""

    def broken_rules(self) -> Iterator[Broken]:
        if self.type == "RegularExpression":
            yield from regex_rule(self.value, ("value",))


class HTTPRouteMatch(Model):
    """Gateway API HTTPRouteMatch: all parts must hold."""

    path: HTTPPathMatch = HTTPPathMatch()
    """What the path must be."""
    headers: Annotated[
        tuple[HTTPHeaderMatch, ...], Field(max_length=16), unique(lambda header: header.name, field="name")
    ] = ()
    """What headers must be; all of them."""
    query_params: Annotated[
        tuple[HTTPQueryParamMatch, ...], Field(max_length=16), unique(lambda query: query.name, field="name")
    ] = ()
    """What parameters of the query must be; all of them."""
    method: Literal["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"] | None = None
    """What the method must be."""


class HTTPRouteTimeouts(RuledModel):
    """Gateway API HTTPRouteTimeouts; `0s` switches a limit off."""

    request: Duration | None = None
    """How long the whole exchange may take; 0s is no limit."""
    backend_request: Duration | None = None
    """How long one attempt at a backend may take; 0s is no limit."""

    def broken_rules(self) -> Iterator[Broken]:
        if self.request is None or self.backend_request is None:
            return
        request = duration.milliseconds(self.request)
        if request and duration.milliseconds(self.backend_request) > request:
            yield Broken(("backendRequest",), f"must not be longer than request ({self.request})")


Codes = Annotated[
    tuple[Annotated[Integer, Field(ge=400, le=599)], ...],
    Field(max_length=200),  # there are no more
    unique(lambda code: code, field=None),
]


class HTTPRouteRetry(Model):
    """Gateway API HTTPRouteRetry; `attempts` counts the tries after the first, 0 is off."""

    codes: Codes = ()
    """Statuses of responses that are tried again."""
    attempts: Annotated[Integer, Field(ge=0)] = 1
    """How many more tries there are after the first; 0 is none."""
    backoff: Duration | None = None
    """The time before another try."""


_Filters = Annotated[tuple[HTTPRouteFilter, ...], Field(max_length=16)]


class HTTPBackendRef(BackendObjectReference):
    """Gateway API HTTPBackendRef."""

    weight: Annotated[Integer, Field(ge=0, le=1_000_000)] = 1
    filters: _Filters = ()

    def broken_rules(self) -> Iterator[Broken]:
        yield from super().broken_rules()
        for broken in filters_agree(self.filters):
            yield broken._replace(path=("filters", *broken.path))


class HTTPRouteRule(RuledModel):
    """Gateway API HTTPRouteRule."""

    name: SectionName | None = None
    matches: Annotated[tuple[HTTPRouteMatch, ...], Field(max_length=64)] = (HTTPRouteMatch(),)
    filters: _Filters = ()
    backend_refs: Annotated[tuple[HTTPBackendRef, ...], Field(max_length=16)] = ()
    timeouts: HTTPRouteTimeouts | None = None
    retry: HTTPRouteRetry | None = None
    session_persistence: SessionPersistence | None = None

    _unread: UnreadRule | None = PrivateAttr(default=None)

    @property
    def unread(self) -> UnreadRule | None:
        """Not None for what is left of a rule that is not valid (`decode.partly`), or newer (`decode.newer`)."""
        return self._unread

    def broken_rules(self) -> Iterator[Broken]:
        for broken in filters_agree(self.filters):
            yield broken._replace(path=("filters", *broken.path))
        lists: list[tuple[tuple[str | int, ...], tuple[HTTPRouteFilter, ...]]] = [(("filters",), self.filters)]
        lists += [(("backendRefs", i, "filters"), ref.filters) for i, ref in enumerate(self.backend_refs)]
        for path, filters in lists:
            yield from self._prefix_rules(path, filters)
        for index, item in enumerate(self.filters if self.backend_refs else ()):
            if item.request_redirect is not None:
                yield Broken(("filters", index), "RequestRedirect must not be used together with backendRefs")

    def _prefix_rules(self, path: tuple[str | int, ...], filters: tuple[HTTPRouteFilter, ...]) -> Iterator[Broken]:
        """`replacePrefixMatch` needs to know the one prefix that it replaces."""
        if len(self.matches) == 1 and self.matches[0].path.type == "PathPrefix":
            return
        for index, item in enumerate(filters):
            for name, modifier in _path_modifiers(item):
                if modifier.replace_prefix_match is not None:
                    yield Broken(
                        (*path, index, name, "path", "replacePrefixMatch"),
                        "needs exactly one match in the rule, of type PathPrefix",
                    )


def _path_modifiers(item: HTTPRouteFilter) -> Iterator[tuple[str, HTTPPathModifier]]:
    if item.request_redirect is not None and item.request_redirect.path is not None:
        yield "requestRedirect", item.request_redirect.path
    if item.url_rewrite is not None and item.url_rewrite.path is not None:
        yield "urlRewrite", item.url_rewrite.path


class HTTPRouteSpec(RuledModel):
    """Gateway API HTTPRouteSpec. `useDefaultGateways` belongs to the experimental channel."""

    parent_refs: Annotated[tuple[ParentReference, ...], Field(max_length=32)] = ()
    hostnames: Annotated[tuple[Hostname, ...], Field(max_length=16)] = ()
    rules: Annotated[tuple[HTTPRouteRule, ...], Field(min_length=1, max_length=16)] = (HTTPRouteRule(),)
    use_default_gateways: Literal["All", "None"] | None = None

    def broken_rules(self) -> Iterator[Broken]:
        yield from parents_differ(self.parent_refs)
        matches = sum(len(rule.matches) for rule in self.rules)
        if matches > MAX_MATCHES:
            yield Broken(("rules",), f"must have at most {MAX_MATCHES} matches in all rules together, got {matches}")
        names: dict[str, int] = {}
        for index, rule in enumerate(self.rules):
            if rule.name is not None and names.setdefault(rule.name, index) != index:
                yield Broken(("rules", index, "name"), f"must be unique; rule {names[rule.name]} has the same")


def parents_differ(parents: tuple[ParentReference, ...]) -> Iterator[Broken]:
    """Two references to one parent must both name a section or port, and not the same (1.7, experimental form:
    the standard channel looks at sections only)."""
    if len(parents) < 2:
        return
    seen: dict[tuple[str, str, str, str], list[tuple[str | None, int | None]]] = {}
    for index, parent in enumerate(parents):
        place = (parent.section_name, parent.port)
        others = seen.setdefault((parent.group, parent.kind, parent.namespace or "", parent.name), [])
        if place in others:
            yield Broken(
                ("parentRefs", index), "sectionName or port must differ from other references to the same parent"
            )
        elif any(_unlike(place, other) for other in others):
            yield Broken(("parentRefs", index), "sectionName or port must be set in every reference to the same parent")
        others.append(place)


def _unlike(one: tuple[str | None, int | None], other: tuple[str | None, int | None]) -> bool:
    return any((a is None) != (b is None) for a, b in zip(one, other, strict=True))


class HTTPRoute(KubeObject):
    """Routing of HTTP requests from Gateways to backends."""

    spec: HTTPRouteSpec = HTTPRouteSpec()
