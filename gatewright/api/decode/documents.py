"""Text in; objects, verdicts and problems out.

Called by the directory source, lint and (for single objects) the Kubernetes source. Pure: it opens no file. Positions
are looked up only for a document that has problems, so that ten thousand good routes cost one parse each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import ValidationError

from gatewright.api.advice.advice import refusals
from gatewright.api.advice.foreign import in_place_of
from gatewright.api.checks.errors import MOST_SHOWN, Finding, findings
from gatewright.api.checks.expressions import broken_expressions
from gatewright.api.checks.field_paths import Path
from gatewright.api.checks.honoured import LISTENER_PROTOCOLS
from gatewright.api.checks.unsupported import unsupported, without_what_lacks
from gatewright.api.decode import partly
from gatewright.api.decode.newer import LENIENT, read
from gatewright.api.decode.rests import rest
from gatewright.api.objects.kinds import KINDS, OWN_GROUPS, KindInfo
from gatewright.api.schema import names
from gatewright.api.schema.metadata import KubeObject, ObjectKey
from gatewright.api.schema.near_names import did_you_mean
from gatewright.api.text import yaml_text
from gatewright.api.text.nulls import without_nulls
from gatewright.api.text.places import Place, Subject
from gatewright.api.text.problem import UNSUPPORTED, Problem, Severity, Verdict, path_text
from gatewright.api.text.yaml_text import TextError

DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Decoded:
    """One object of a document, or what stands in its place. `line` is that of the document.

    `item` is None when the object is invalid or of a kind without model; `key` is None when not even kind and name
    could be read. An `unsupported` object is complete; its problems name the fields. A `valid` one has errors where
    proxies always reject it (`advice.refusals`).
    """

    key: ObjectKey | None
    item: KubeObject | None
    verdict: Verdict
    problems: tuple[Problem, ...]
    file: str
    line: int
    path: Path = ()
    """Where the object is in its document: an item of a List is not the document itself."""
    remains: KubeObject | None = None
    """What can be read of an invalid object (`rests`): where it attaches, of a GatewayPolicy which security policies
    refuse, of a route the rules that answer 500."""
    partial: KubeObject | None = None
    """In place of an invalid route: itself, when some of its rules are valid (`partly`)."""


Cache = MutableMapping[str, tuple[Decoded, ...]]
"""Text of a document to what decode_document() made of it; the caller decides what to forget."""


def decode(text: str, file: str, cache: Cache | None = None) -> list[Decoded]:
    """Every object of a file. With a cache, a document whose text is known is not parsed again, wherever it stands."""
    decoded: list[Decoded] = []
    for first_line, document in split_documents(text):
        if cache is None:
            decoded += decode_document(document, file, first_line)
            continue
        known = cache.get(document)
        if known is None:
            known = cache[document] = decode_document(document, "")
        decoded += (_moved(item, file, first_line - 1) for item in known)
    return decoded


_SEPARATOR = re.compile(r"^(?:---(?:[ \t]*\r?(?:\n|\Z)|(?=[ \t]))|\.\.\.[ \t]*\r?(?:\n|\Z))", re.MULTILINE)
_EMPTY = re.compile(r"(?:\s*(?:#|%).*(?:\n|$))*\s*")


def split_documents(text: str) -> list[tuple[int, str]]:
    """The documents of a YAML stream with the line each begins on; empty ones and comments are left out.

    What stands behind the dashes on their own line belongs to the document.
    """
    text = text.removeprefix("\ufeff")
    documents = []
    start, line = 0, 1
    for separator in _SEPARATOR.finditer(text):
        documents.append((line, text[start : separator.start()]))
        line += text.count("\n", start, separator.end())
        start = separator.end()
    documents.append((line, text[start:]))
    return [(line, document) for line, document in documents if not _EMPTY.fullmatch(document)]


def decode_document(text: str, file: str, first_line: int = 1) -> tuple[Decoded, ...]:
    """The objects of one document (several when it is a List). Depends on its arguments alone."""
    try:
        value = yaml_text.load(text)
    except TextError as failure:
        problem = Problem(file, first_line + failure.line - 1, "", "", failure.message, column=failure.column)
        return (Decoded(None, None, "invalid", (problem,), file, problem.line),)
    if value is None:
        return ()
    return tuple(_decode_value(value, Place(text, file, first_line), ()))


def decode_object(value: dict[str, Any], source: str, *, newer: bool = False) -> Decoded:
    """One object that came without text, from an API server; its problems have no lines. `newer`: what is unknown is
    of a newer version of its definition (module `newer`), and not a mistake."""
    decoded = next(_decode_value(value, Place(None, source, 0), (), expand=False))
    if not newer or decoded.verdict != "invalid" or decoded.key is None or decoded.key.kind not in LENIENT:
        return decoded
    info = KINDS[decoded.key.kind]
    item = read(without_nulls(_with_namespace(_without_status(value, info), info)), info.model)
    return decoded if item is None else _judged(item, [], Subject(Place(None, source, 0), (), str(decoded.key)))


def unread_object(value: dict[str, Any], source: str, why: str) -> Decoded:
    """What stands in the place of an object of a known kind that is not decoded, for a reason that is not in it."""
    info = KINDS[value["kind"]]
    key = _key_of(value, info)
    subject = Subject(Place(None, source, 0), (), str(key))
    document = _without_status(value, info)
    document = names.canonical(document, []) if info.kind in names.OUR_KINDS else document
    problems = [subject.problem((), why)]
    remains = rest(info.kind, _with_namespace(document, info), problems)
    return replace(_decoded(key, None, "invalid", problems, subject), remains=remains)


def _decode_value(value: Any, place: Place, path: Path, *, expand: bool = True) -> Iterator[Decoded]:
    subject = Subject(place, path, "")
    if not isinstance(value, dict):
        yield _refused(subject, "must be an object with apiVersion and kind")
        return
    api_version, kind = value.get("apiVersion"), value.get("kind")
    if api_version is None and kind is None and value:
        yield _refused(subject, next((text for field, text in _OF_OTHERS.items() if field in value), _NO_OBJECT))
        return
    for name, given in (("apiVersion", api_version), ("kind", kind)):
        if not isinstance(given, str) or not given:
            yield _refused(subject, "is required" if given is None else "must be a string", (name,))
            return
    assert isinstance(api_version, str) and isinstance(kind, str)
    if expand and kind.endswith("List") and isinstance(value.get("items"), list):
        for index, item in enumerate(value["items"]):
            yield from _decode_value(_list_item(item, api_version, kind), place, (*path, "items", index))
        return
    info = KINDS.get(kind)
    if info is None or api_version not in info.api_versions:
        yield _unknown(api_version, kind, subject)
    else:
        yield _decode_known(value, info, subject)


_OF_OTHERS: Final = {
    "binds": "is the file of a proxy alone, not an object: `gatewright up FILE` runs it; a folder of objects is read "
    "without it",
    "mcpServers": "is the file of an MCP client: `gatewright import FILE` makes the file of a proxy of it",
    "model_list": "is a configuration of LiteLLM: `gatewright import litellm FILE` makes the file of a proxy of it",
}
"""Of what a document is that has this field and is no object."""
_NO_OBJECT: Final = (
    "has neither apiVersion and kind, as an object has, nor binds, as the file of a proxy alone has; "
    "files of other products are not read"
)


def _refused(subject: Subject, message: str, path: Path = ()) -> Decoded:
    """The outcome when not even the kind of the object is known."""
    return Decoded(None, None, "invalid", (subject.problem(path, message),), subject.place.file, subject.place.line)


def _list_item(item: Any, api_version: str, kind: str) -> Any:
    """An item of a typed list (`HTTPRouteList`) may leave out what the list says."""
    if isinstance(item, dict) and kind != "List" and "kind" not in item:
        return {"apiVersion": api_version, "kind": kind.removesuffix("List"), **item}
    return item


def _unknown(api_version: str, kind: str, subject: Subject) -> Decoded:
    group = api_version.rpartition("/")[0]
    if group not in OWN_GROUPS:
        owner = KINDS.get(kind)
        if owner is not None and owner.group == group:
            return _refused(subject, f"{kind} is read in version {' or '.join(owner.api_versions)}", ("apiVersion",))
        message = f"{api_version} {kind} is not read: skipped{in_place_of(group, kind)}"
        note = subject.problem((), message, "info", code="not-read")
        return Decoded(None, None, "valid", (note,), subject.place.file, subject.place.line)
    of_group = [info for info in KINDS.values() if info.group == group]
    known = next((info for info in of_group if info.kind == kind), None)
    if known is not None:
        versions = " or ".join(known.api_versions)
        return _refused(subject, f'unknown version "{api_version}" of {kind}; known: {versions}', ("apiVersion",))
    near = did_you_mean(kind, [info.kind for info in of_group])
    return _refused(subject, f'unknown kind "{kind}" of {api_version}{near}', ("kind",))


def _decode_known(value: dict[str, Any], info: KindInfo, subject: Subject) -> Decoded:
    key = _key_of(value, info)
    subject = replace(subject, name=str(key) if key else info.kind)
    document = _without_status(value, info)
    conflicts: list[names.BothSpellings] = []
    if info.kind in names.OUR_KINDS:
        document = names.canonical(document, conflicts)
    problems = [_both(conflict, subject) for conflict in conflicts]
    item, found = _validate(_with_namespace(document, info), info.model)
    found += broken_expressions(info.model, document)
    for finding in without_what_lacks(info.kind, info.model, found):
        severity: Severity = "warning" if finding.unknown_field and info.model.tolerant else "error"
        code = "not-read" if severity == "warning" else "invalid"
        problems.append(subject.problem(finding.path, finding.message, severity, code=code))
    problems.sort(key=lambda problem: (problem.line, problem.column))
    if item is None or any(problem.severity == "error" for problem in problems):
        refused = _decoded(key, None, "invalid", shown(problems, subject), subject)
        return _with_rest(refused, _with_namespace(document, info), info, problems, found)
    if not info.served:
        problems.append(subject.problem(("kind",), f"{UNSUPPORTED}{info.kind}", unsupported=True))
        return _decoded(key, item, "unsupported", problems, subject)
    return _judged(item, problems, subject)


def _with_rest(
    refused: Decoded, document: dict[str, Any], info: KindInfo, problems: list[Problem], found: Iterable[Finding]
) -> Decoded:
    """The outcome of an invalid object with what acts of it. `found`: its mistakes, where they are."""
    part = partly.partly(without_nulls(document), info.model, found) if info.kind in partly.KINDS else None
    if part is None:
        return replace(refused, remains=rest(info.kind, document, problems))
    return replace(refused, partial=part.route) if part.works else replace(refused, remains=part.route)


def _without_status(value: dict[str, Any], info: KindInfo) -> dict[str, Any]:
    if info.model.reads_status:
        return value
    return {name: part for name, part in value.items() if name != "status"}


def _judged(item: KubeObject, problems: list[Problem], subject: Subject) -> Decoded:
    refused = unsupported(item)
    problems += [subject.problem(path, message, unsupported=True) for path, message in refused]
    if item.kind in names.OUR_KINDS:
        problems += [subject.problem(*each, refused=True) for each in refusals(item)]
    waiting = _WAITING.get(item.kind)
    if waiting is not None:
        problems += waiting(item, subject)
    verdict: Verdict = "unsupported" if refused else "valid"
    return _decoded(item.key, item, verdict, problems, subject)


def _decoded(
    key: ObjectKey | None, item: KubeObject | None, verdict: Verdict, problems: list[Problem], subject: Subject
) -> Decoded:
    return Decoded(key, item, verdict, tuple(problems), subject.place.file, subject.place.line, subject.path)


def _waiting_listeners(item: KubeObject, subject: Subject) -> Iterator[Problem]:
    """Listeners whose protocol is a matter of their status, not of the Gateway."""
    listeners = getattr(item, "spec").listeners  # noqa: B009 - only a Gateway comes here
    for index, listener in enumerate(listeners):
        if listener.protocol in LISTENER_PROTOCOLS:
            message = f"{UNSUPPORTED}{listener.protocol}; this listener opens no port"
            yield subject.problem(("spec", "listeners", index, "protocol"), message, "warning", unsupported=True)


_WAITING: dict[str, Callable[[KubeObject, Subject], Iterator[Problem]]] = {
    "Gateway": _waiting_listeners,
}
"""Kinds with settings that are accepted although something about them is still to come."""


def _both(conflict: names.BothSpellings, subject: Subject) -> Problem:
    message = f"is the same as {path_text(conflict.canonical)}: set only one of them"
    return subject.problem(conflict.neutral, message)


def shown(problems: list[Problem], subject: Subject) -> list[Problem]:
    """As many problems of an object as anybody reads."""
    more = len(problems) - MOST_SHOWN
    if more <= 0:
        return problems
    return [*problems[:MOST_SHOWN], subject.problem((), f"{more} more mistakes are not shown: mend these first")]


def _key_of(value: dict[str, Any], info: KindInfo) -> ObjectKey | None:
    """The key as far as it can be read from an object that may be invalid."""
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return None
    namespace = metadata.get("namespace") or DEFAULT_NAMESPACE
    return ObjectKey(info.kind, str(namespace) if info.namespaced else "", metadata["name"])


def _with_namespace(document: dict[str, Any], info: KindInfo) -> dict[str, Any]:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return document
    if info.namespaced and not metadata.get("namespace"):
        return {**document, "metadata": {**metadata, "namespace": DEFAULT_NAMESPACE}}
    if not info.namespaced and "namespace" in metadata:
        return {**document, "metadata": {**metadata, "namespace": None}}
    return document


def _validate(document: dict[str, Any], model: type[KubeObject]) -> tuple[KubeObject | None, list[Finding]]:
    """The model and, when it is not clean, what was found; unknown fields of a tolerant kind do not stop it."""
    try:
        return model.model_validate(document), []
    except ValidationError:
        pass
    # Null means absent, as in Kubernetes. Only now, because nulls are rare and a walk is not free.
    document = without_nulls(document)
    unknown: list[Finding] = []
    while True:
        try:
            return model.model_validate(document), unknown
        except ValidationError as failure:
            found = findings(failure, model, document, secret=model.secret)
        extra = [finding for finding in found if finding.unknown_field] if model.tolerant else []
        if not extra or len(extra) < len(found):
            return None, unknown + found
        unknown += extra
        document = _without(document, [finding.path for finding in extra])


def _without(value: Any, paths: Iterable[Path]) -> Any:
    """A copy without the fields at `paths`: each part is copied once, however many of them it has."""
    gone: set[str | int] = set()
    below: dict[str | int, list[Path]] = {}
    for first, *further in paths:
        if further:
            below.setdefault(first, []).append(tuple(further))
        else:
            gone.add(first)
    if isinstance(value, list):
        return [_without(part, below[at]) if at in below else part for at, part in enumerate(value)]
    return {
        name: _without(part, below[name]) if name in below else part for name, part in value.items() if name not in gone
    }


def _moved(decoded: Decoded, file: str, lines: int) -> Decoded:
    """What a cache holds, which was read as if on line 1 of no file, as if read `lines` further down in `file`."""
    problems = tuple(replace(problem, file=file, line=problem.line + lines) for problem in decoded.problems)
    return replace(decoded, file=file, line=decoded.line + lines, problems=problems)
