"""The standalone file (`gatewright-proxy -f`): text to wire resources, settings and problems.

Called by the proxy's agent and by lint, so that both read a file alike. It opens no file. A file with an error gives
no resources at all: its reader keeps the last good ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import ValidationError

from gatewright.api.checks import certificates
from gatewright.api.checks.errors import findings
from gatewright.api.checks.expressions import broken_expressions
from gatewright.api.checks.honoured import LISTENER_PROTOCOLS, STANDALONE
from gatewright.api.checks.unsupported import unsupported_fields, without_what_lacks
from gatewright.api.decode.documents import shown, split_documents
from gatewright.api.lower.to_wire import file_name
from gatewright.api.schema import names
from gatewright.api.schema.log_level import parse_log_level
from gatewright.api.standalone.backend_resources import StdioServer
from gatewright.api.standalone.config import Config
from gatewright.api.standalone.file import StandaloneFile
from gatewright.api.standalone.resources import Resolve, Resources
from gatewright.api.text import yaml_text
from gatewright.api.text.nulls import without_nulls
from gatewright.api.text.places import Path, Place, Subject
from gatewright.api.text.problem import UNSUPPORTED, Problem, path_text
from gatewright.wire.v1 import resource_pb2

_FOR_A_CONTROLLER: Final = "a file with apiVersion and kind is for a controller: run its folder with `gatewright up`"

_TOP_LEVEL: Final = ("binds", "config", "backends", "frontendPolicies")


@dataclass(frozen=True, slots=True)
class Standalone:
    """What a file says. With an error among `problems` there are no resources, and settings are the defaults."""

    settings: Config
    resources: tuple[resource_pb2.Resource, ...] = field(repr=False)
    """Secrets are among them."""
    problems: tuple[Problem, ...]
    content: StandaloneFile | None = None
    """The file's own values, when they are valid."""
    places: Mapping[str, Path] = field(default_factory=dict, repr=False)
    """Where the resources stand in the file, by their keys."""
    certificates: Mapping[Path, bytes] = field(default_factory=dict, repr=False)
    """Those of listeners, with those that signed them, by path."""
    servers: tuple[StdioServer, ...] = field(default=(), repr=False)
    """MCP servers that the proxy starts."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that keep the file from being applied."""
        return tuple(problem for problem in self.problems if problem.severity == "error")


def is_standalone(value: Any) -> bool:
    """Whether a document is a standalone file rather than a Kubernetes object."""
    return isinstance(value, dict) and not {"apiVersion", "kind"} & set(value) and bool(set(_TOP_LEVEL) & set(value))


def load(
    text: str,
    file: str,
    log_modules: Collection[str] | None = None,
    resolve: Resolve | None = None,
    now: float | None = None,
    socket: str = "",
) -> Standalone:
    """Read a file. `log_modules` are the names that `config.logging.level` may use; None: any. `resolve` reads the
    secrets that are in other files or in variables; None: none is read, and such a secret is missing among the
    resources. `now`, seconds since the epoch: certificates that expire soon are warned of; None: they are not.
    `socket`: path of the Unix socket where servers are to be found that the proxy starts."""
    documents = split_documents(text)
    if len(documents) != 1:
        message = f"must be one document; {_FOR_A_CONTROLLER}"
        if not documents:
            message = "is empty; write `binds: []` to serve nothing"
        line = documents[1][0] if documents else 1
        return Standalone(Config(), (), (Problem(file, line, "", "", message),))
    first_line, document = documents[0]
    try:
        value = yaml_text.load(document)
    except yaml_text.TextError as failure:
        line = first_line + failure.line - 1
        return Standalone(Config(), (), (Problem(file, line, "", "", failure.message, column=failure.column),))
    subject = Subject(Place(document, file, first_line), (), "")
    if not isinstance(value, dict):
        return Standalone(Config(), (), (subject.problem((), f"must be an object with {', '.join(_TOP_LEVEL)}"),))
    if {"apiVersion", "kind"} <= set(value):
        return Standalone(Config(), (), (subject.problem((), _FOR_A_CONTROLLER),))
    read = _read(value, subject, log_modules, resolve, socket)
    return read if now is None else replace(read, problems=(*read.problems, *_expiring(read, subject, now)))


def refusal(text: str, file: str, path: Path, reason: str) -> Problem:
    """What a worker refuses, for the author of the file: `path` is that of the resource (`Standalone.places`), `reason`
    begins with the wire's name of the policy at fault, where there is one."""
    first_line, document = split_documents(text)[0]
    policy, _, why = reason.partition(": ")
    name = file_name(policy)
    if name is not None and why:
        path, reason = (*path, "policies", name), why
    elif policy == "access_log":
        reason = why
    return Subject(Place(document, file, first_line), (), "").problem(path, reason)


def _read(
    value: dict[str, Any], subject: Subject, log_modules: Collection[str] | None, resolve: Resolve | None, socket: str
) -> Standalone:
    conflicts: list[names.BothSpellings] = []
    document = without_nulls(names.canonical(value, conflicts))
    problems = [
        subject.problem(clash.neutral, f"is the same as {path_text(clash.canonical)}: set only one of them")
        for clash in conflicts
    ]
    problems += [subject.problem(found.path, found.message) for found in broken_expressions(StandaloneFile, document)]
    try:
        content = StandaloneFile.model_validate(document)
    except ValidationError as failure:
        wrong = without_what_lacks(STANDALONE, StandaloneFile, findings(failure, StandaloneFile, document))
        problems += [subject.problem(found.path, found.message) for found in wrong]
        return Standalone(Config(), (), _sorted(problems, subject))
    problems += [subject.problem(path, message, unsupported=True) for path, message in _unsupported(content)]
    try:
        parse_log_level(content.config.logging.level, log_modules)
    except ValueError as failure:
        problems.append(subject.problem(("config", "logging", "level"), str(failure)))
    if problems:
        return Standalone(Config(), (), _sorted(problems, subject), content)
    resources = Resources(content, resolve, socket)
    made = tuple(resources.made())
    if resources.problems:
        problems = [subject.problem(path, message) for path, message in dict.fromkeys(resources.problems)]
        return Standalone(Config(), (), _sorted(problems, subject), content)
    servers = tuple(resources.servers.values())
    return Standalone(content.config, made, (), content, resources.places, resources.certificates, servers)


def _expiring(read: Standalone, subject: Subject, now: float) -> Iterator[Problem]:
    for path, chain in read.certificates.items():
        warning = certificates.expiry_warning(certificates.expiry(chain), now)
        if warning:
            yield subject.problem((*path, certificates.CERTIFICATE), warning, "warning", code="expiring")


def _unsupported(content: StandaloneFile) -> Iterator[tuple[Path, str]]:
    """What is valid and cannot be honoured yet."""
    yield from unsupported_fields(STANDALONE, StandaloneFile, content)
    for placed in content.listeners():
        if placed.listener.protocol in LISTENER_PROTOCOLS:
            yield (*placed.path, "protocol"), f"{UNSUPPORTED}{placed.listener.protocol}"


def _sorted(problems: list[Problem], subject: Subject) -> tuple[Problem, ...]:
    return tuple(shown(sorted(problems, key=lambda problem: (problem.line, problem.column)), subject))
