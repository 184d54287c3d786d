"""What an author writes: documents in files, edits of them, and what they promise. The test's own model of a folder.

A file is a list of pieces. A piece is one of the `VARIANTS` of an object, or is broken in one of three ways. Of an
object in error the last good version in the same file stays (`sources/tree`), so the model keeps it as well; a cold
start has nothing to keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

GATEWAY_API = "apiVersion: gateway.networking.k8s.io/v1"
HTTP = "{name: http, protocol: HTTP, port: 8080, allowedRoutes: {namespaces: {from: All}}}"
ONE_HOST = "{name: one-host, protocol: HTTP, port: 8080, hostname: x.test}"
WILD = (
    "{name: wild, protocol: HTTP, port: 8081, hostname: '*.test', allowedRoutes: {namespaces: {from: Selector, "
    "selector: {matchLabels: {open: 'yes'}}}}}"
)
TCP = "{name: tcp, protocol: TCP, port: 8082}"
TO_S = "{name: s, port: 80}"
TO_T = "{name: t, port: 80}"
TO_FOREIGN = "{name: s, namespace: b, port: 80}"
TO_X = "{group: gatewright.dev, kind: GatewayBackend, name: x}"
NOWHERE = "{name: missing, port: 80}"
REFUSED_FILTER = "{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-refuse, value: '1'}]}}"
SET_HEADER = "{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-set, value: '1'}]}}"
REDIRECT = "{type: RequestRedirect, requestRedirect: {statusCode: 301, hostname: other.test}}"
REWRITE = "{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}}"


def _meta(namespace: str, name: str, more: str = "") -> str:
    return f"metadata: {{namespace: {namespace}, name: {name}{more}}}"


def _class(controller: str) -> str:
    return f"{GATEWAY_API}\nkind: GatewayClass\nmetadata: {{name: ours}}\nspec: {{controllerName: {controller}}}\n"


def _gateway(name: str, *listeners: str) -> str:
    spec = f"spec: {{gatewayClassName: ours, listeners: [{', '.join(listeners)}]}}"
    return f"{GATEWAY_API}\nkind: Gateway\n{_meta('a', name)}\n{spec}\n"


def _route(namespace: str, name: str, parents: str, rules: str, hosts: str = "") -> str:
    hosts = f"hostnames: [{hosts}], " if hosts else ""
    spec = f"spec: {{parentRefs: [{parents}], {hosts}rules: [{rules}]}}"
    return f"{GATEWAY_API}\nkind: HTTPRoute\n{_meta(namespace, name)}\n{spec}\n"


def _calls(parents: str, rules: str, hosts: str = "") -> str:
    return _route("a", "r", parents, rules, hosts).replace("kind: HTTPRoute", "kind: GRPCRoute")


def _rule(path: str, backends: str = "", filters: str = "", kind: str = "PathPrefix", more: str = "") -> str:
    fields = [f"matches: [{{path: {{type: {kind}, value: {path}}}{more}}}]"]
    fields += [f"filters: [{filters}]"] * bool(filters) + [f"backendRefs: [{backends}]"] * bool(backends)
    return f"{{{', '.join(fields)}}}"


def _service(namespace: str, name: str, port: str = "{port: 80}") -> str:
    return f"apiVersion: v1\nkind: Service\n{_meta(namespace, name)}\nspec: {{ports: [{port}]}}\n"


def _slice(namespace: str, name: str, service: str, *addresses: str) -> str:
    label = f", labels: {{kubernetes.io/service-name: {service}}}"
    found = ", ".join(f"{{addresses: [{address}]}}" for address in addresses)
    return (
        f"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n{_meta(namespace, name, label)}\n"
        f"addressType: IPv4\nports: [{{port: 9000}}]\nendpoints: [{found}]\n"
    )


def _backend(spec: str) -> str:
    return f"apiVersion: gatewright.dev/v1alpha1\nkind: GatewayBackend\n{_meta('a', 'x')}\nspec: {{{spec}}}\n"


def _namespace(name: str, labels: str = "") -> str:
    return f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}, labels: {{{labels}}}}}\n"


GRANT = f"""{GATEWAY_API}
kind: ReferenceGrant
{_meta("b", "g")}
spec:
  from: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: a}}]
  to: [{{group: "", kind: Service}}]
"""

VARIANTS: Mapping[str, tuple[str, ...]] = {
    "class": (_class("gatewright.dev/controller"), _class("example.com/other")),
    "gateway one": (
        _gateway("one", HTTP),
        _gateway("one", HTTP, ONE_HOST),
        _gateway("one", WILD, HTTP, TCP),
        _gateway("one", WILD),
        _gateway("one", HTTP.replace("name: http", "name: web")),
    ),
    "gateway two": (_gateway("two", HTTP), _gateway("two", HTTP.replace("8080", "8081")), _gateway("two", WILD)),
    "route a/r": (
        _route("a", "r", "{name: one}", _rule("/", TO_S)),
        _route("a", "r", "{name: one}", _rule("/p", TO_T) + ", " + _rule("/p/q", TO_S, kind="Exact")),
        _route("a", "r", "{name: one}, {name: two}", _rule("/p", TO_FOREIGN, REWRITE), "x.test"),
        _route("a", "r", "{name: one}", _rule("/", TO_S, REFUSED_FILTER)),
        _route("a", "r", "{name: two}", _rule("/", TO_X)),
        _route("a", "r", "{name: one}", _rule("/p/q", TO_S) + ", " + _rule("/", TO_S, REFUSED_FILTER)),
    ),
    "route a/q": (
        _route("a", "q", "{name: one}, {name: two}", _rule("/p", TO_S, SET_HEADER), "x.test, '*.test'"),
        _route("a", "q", "{name: one}", _rule("/p/q", "", REDIRECT)),
        _route("a", "q", "{name: one}", _rule("/", f"{TO_S}, {TO_T}", more=", method: POST")),
        _route("a", "q", "{name: one}", _rule("'/p.*'", TO_X, kind="RegularExpression")),
        _route("a", "q", "{name: one}", _rule("/p", f"{TO_X}, {NOWHERE}")),
        _route("a", "q", "{name: one}, {name: two}", _rule("/p/q", TO_T, REFUSED_FILTER)),
    ),
    "route b/r": (
        _route("b", "r", "{name: one, namespace: a}, {name: two, namespace: a}", _rule("/", TO_S)),
        _route("b", "r", "{name: two, namespace: a}", _rule("/e", TO_S, kind="Exact"), "y.test"),
        _route("b", "r", "{name: one, namespace: a, sectionName: wild}", _rule("/", TO_S)),
    ),
    "route of calls a/r": (
        _calls("{name: one}", f"{{matches: [{{method: {{service: p, method: q}}}}], backendRefs: [{TO_S}]}}"),
        _calls(
            "{name: one}, {name: two}", f"{{matches: [{{method: {{service: p}}}}], backendRefs: [{TO_T}]}}", "x.test"
        ),
        _calls(
            "{name: one}", f"{{backendRefs: [{TO_S}, {NOWHERE}]}}, {{backendRefs: [{TO_X}], filters: [{SET_HEADER}]}}"
        ),
        _calls(
            "{name: one}",
            f"{{matches: [{{method: {{type: RegularExpression, service: p.*}}}}], filters: [{REFUSED_FILTER}], "
            f"backendRefs: [{TO_S}]}}",
        ),
    ),
    "service a/s": (
        _service("a", "s"),
        _service("a", "s", "{port: 81}"),
        _service("a", "s", "{port: 80, appProtocol: kubernetes.io/ws}"),
    ),
    "service a/t": (_service("a", "t"), _service("a", "t", "{port: 80, protocol: UDP}")),
    "service b/s": (_service("b", "s"),),
    "slice a/s-1": (
        _slice("a", "s-1", "s", "10.0.0.1"),
        _slice("a", "s-1", "s", "10.0.0.1", "10.0.0.2"),
        _slice("a", "s-1", "s"),
        _slice("a", "s-1", "t", "10.0.0.1"),
    ),
    "slice a/s-2": (_slice("a", "s-2", "s", "10.0.0.2"), _slice("a", "s-2", "s", "10.0.0.3")),
    "slice a/t-1": (_slice("a", "t-1", "t", "10.0.1.1"), _slice("a", "t-1", "t")),
    "slice b/s-1": (_slice("b", "s-1", "s", "10.1.0.1"), _slice("b", "s-1", "s", "10.1.0.2")),
    "backend a/x": (
        _backend("static: {host: 10.2.0.1, port: 80}"),
        _backend("static: {host: x.internal, port: 80}"),
        _backend("static: {host: 10.2.0.1, port: 666}"),  # refused by workers
        _backend("a2a: {host: x.internal, port: 80}"),  # not supported
    ),
    "namespace a": (_namespace("a", "open: 'yes'"), _namespace("a")),
    "namespace b": (_namespace("b"), _namespace("b", "open: 'yes'")),
    "grant": (GRANT,),
}
"""Object to the texts that it may have. The first ones make a world in which most edits have consequences."""

GONE, WRONG, NONSENSE = -1, -2, -3
"""Instead of a variant: nothing, an object in error that has a name, and text that names nothing."""


class Piece(NamedTuple):
    thing: str
    variant: int


BROKEN = "{apiVersion: [\n"
CAN_BE_WRONG = tuple(name for name, texts in VARIANTS.items() if "\nspec:" in texts[0] or "\nendpoints:" in texts[0])


AS_BEFORE = " as before"


def as_before(piece: Piece) -> Piece:
    """The object once more, under another name: what a Service loses may wait where what another one gains does not."""
    return Piece(piece.thing + AS_BEFORE, piece.variant)


def text_of(piece: Piece) -> str:
    if piece.variant == NONSENSE:
        return BROKEN
    thing = piece.thing.removesuffix(AS_BEFORE)
    text = VARIANTS[thing][max(piece.variant, 0)]
    if thing != piece.thing:
        text = re.sub(r" name: [\w-]+", r"\g<0>-before", text, count=1)
    return text if piece.variant >= 0 else re.sub(r"^(spec|endpoints):(.*\n)(  .*\n)*", r"\1: 7\n", text, flags=re.M)


@dataclass(frozen=True, slots=True)
class File:
    """Pieces as written, and objects kept of an older text."""

    pieces: tuple[Piece, ...] = ()
    kept: tuple[Piece, ...] = ()

    @property
    def text(self) -> str:
        return "---\n".join(map(text_of, self.pieces))

    @property
    def is_in_error(self) -> bool:
        return any(piece.variant < 0 for piece in self.pieces)

    def good(self) -> Iterator[Piece]:
        yield from (piece for piece in self.pieces if piece.variant >= 0)
        yield from self.kept

    def written(self, pieces: Iterable[Piece]) -> File:
        """The file with other pieces; what these do not say for an error stays."""
        new = tuple(pieces)
        said = {piece.thing for piece in new if piece.variant >= 0}
        wrong = {piece.thing for piece in new if piece.variant == WRONG}
        lost = any(piece.variant == NONSENSE for piece in new)
        before = {piece.thing: piece for piece in reversed([*self.good()])}
        kept = [piece for name, piece in before.items() if name not in said and (lost or name in wrong)]
        return File(new, tuple(sorted(kept)))


Folder = Mapping[str, File]
Objects = frozenset[Piece]


def objects_of(folder: Folder) -> Objects:
    """What a folder says: each object from the first of its files, and there from its first piece."""
    found: dict[str, Piece] = {}
    for _, file in sorted(folder.items()):
        for piece in file.good():
            found.setdefault(piece.thing, piece)
    return frozenset(found.values())


def wrong_of(folder: Folder) -> dict[str, Piece | None]:
    """The objects that are in error where they come from, with what acts for them."""
    acts: dict[str, tuple[Piece, bool]] = {}
    wrong: dict[str, Piece | None] = {}
    for _, file in sorted(folder.items()):
        named = {piece.thing for piece in file.pieces if piece.variant == WRONG}
        said = {piece.thing for piece in file.pieces if piece.variant >= 0}
        for piece in file.good():
            acts.setdefault(piece.thing, (piece, piece.thing in named - said))
        wrong |= dict.fromkeys(sorted(named - said))
    of_good = {thing: piece for thing, (piece, is_wrong) in acts.items() if is_wrong}
    return {thing: of_good.get(thing) for thing in wrong if thing in of_good or thing not in acts}


def started_cold(folder: Folder) -> dict[str, File]:
    return {name: File().written(file.pieces) for name, file in folder.items()}


STAYS = "class.yaml"
"""No step takes this file: Gateways whose class is gone are served (tests/policies/test_vanished_classes.py), which no
fresh start would do."""
START: Folder = {
    STAYS: File((Piece("class", 0),)),
    "base.yaml": File(tuple(Piece(name, 0) for name in ("gateway one", "gateway two", "namespace a"))),
    "routes.yaml": File(tuple(Piece(name, 0) for name in ("route a/r", "route a/q", "route b/r", "grant"))),
    "services.yaml": File(
        tuple(
            Piece(name, 0)
            for name in (
                "service a/s", "slice a/s-1", "service a/t", "slice a/t-1", "service b/s", "slice b/s-1", "backend a/x"
            )
        )
    ),
}  # fmt: skip
FILES = ("a.yaml", *(name for name in START if name != STAYS), "z.yaml")
