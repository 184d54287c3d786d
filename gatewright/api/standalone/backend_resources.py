"""Backends of the standalone file as wire: those of the top level, of routes, and of whatever else names or has one.

Called by `resources`. What a backend is becomes wire by the row of its kind (`lower/kinds`), as in a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from gatewright.api.lower import to_wire
from gatewright.api.lower.kinds import registry
from gatewright.api.lower.kinds.kind import STDIO, Kind, Policies, Server
from gatewright.api.schema.byte_size import byte_size
from gatewright.api.standalone.backends import FileBackend
from gatewright.api.standalone.file import StandaloneFile
from gatewright.api.standalone.parts import Stdio
from gatewright.api.text.places import Path
from gatewright.wire.v1 import backend_pb2, policy_pb2

NAMESPACE: Final = "default"
"""Of all that a file has."""

MAX_LINE: Final = 4 * 1024 * 1024
"""Bytes of a message of a server that the proxy starts, where `maxAnswerSize` is not set."""

References = Callable[[str, Path], to_wire.References]
"""What policies name, by their owner and where they stand."""


class StdioServer(NamedTuple):
    """A server that the proxy starts. `digest`: the path by which it is asked for."""

    digest: str
    name: str
    stdio: Stdio
    is_stateless: bool
    max_line: int
    """Bytes of a message that it writes."""


class FileBackends:
    """All of one file, as they are asked for."""

    def __init__(
        self, content: StandaloneFile, references: References, problems: list[tuple[Path, str]], socket: str
    ) -> None:
        """`socket`: path of the Unix socket of those `servers` that the proxy starts."""
        self.made: dict[str, backend_pb2.Backend] = {}
        """By key; those that others name come before these."""
        self.servers: dict[str, StdioServer] = {}
        """By digest."""
        self.problems = problems
        self.socket = socket
        self.references = references
        self._named = {backend.name: backend for backend in content.backends}
        self._positions = {backend.name: index for index, backend in enumerate(content.backends)}

    def key(self, path: Path, written: Any) -> str:  # Any: whatever is a backend, or names one of the top level
        """The key of the backend that is named, or that is written there. With policies of the reference it is a
        backend of its own; these win over those of the backend that is named. `path`: where it stands."""
        top = written if isinstance(written, FileBackend) else self._named.get(written.backend)
        found = registry.of_file(written if top is None else top)
        if found is None:  # of a kind that does not work yet: the file is refused for it
            return _key(top.name if top is not None else "")
        kind, model = found
        name = top.name if top is not None else kind.unnamed(model)
        policies = self._policies(name, path, top, written)
        if top is not written and written.policies is not None and policies:
            name += f"#{_digest(policies)}"
        key = _key(name)
        if key not in self.made:
            self._make(key, path, kind, model, policies)
        return key

    def _policies(self, name: str, path: Path, top: FileBackend | None, written: Any) -> Policies:
        """Of the backend that is named, and of what names it: by field of the wire, sorted."""
        policies: dict[str, policy_pb2.Policy] = {}
        for each in (top,) if top is written else (top, written):
            if each is not None and each.policies is not None:
                place = path if each is written else ("backends", self._positions[each.name])
                references = self.references(f"backend/{name}", (*place, "policies"))
                policies |= to_wire.by_field(to_wire.backend_policies(each.policies, references))
        return {field: policies[field] for field in sorted(policies)}

    def _make(self, key: str, path: Path, kind: Kind, model: Any, policies: Policies) -> None:  # Any: as kind.Kind
        lowered = kind.lowered(model, policies, _References(self, key, (*path, kind.facts.file_field), model))
        self.made |= {f"{key}/{name}": part for name, part in lowered.parts.items()}
        self.made[key] = lowered.message


class _References:
    """`kind.BackendReferences` of one backend."""

    def __init__(self, backends: FileBackends, key: str, path: Path, model: Any) -> None:  # Any: as kind.Kind
        self._backends, self._key, self._path, self._model = backends, key, path, model

    def policies(self, part: str, settings: Any, path: Path) -> Policies:  # Any: as BackendReferences
        owner = f"{self._key.partition('/')[2]}/{part}"
        references = self._backends.references(owner, (*self._path, *path))
        return to_wire.by_field(to_wire.backend_policies(settings, references))

    def part(self, name: str) -> str:
        return f"{self._key}/{name}"

    def named(self, part: str, reference: Any, port: int | None, path: Path) -> str:  # Any: a FileReference
        return self._backends.key((*self._path, *path), reference)

    def found(self, part: Any, taken: Collection[str]) -> Sequence[Server]:  # Any: the file's target
        """A server that the proxy starts: only where and by which name it is asked for leaves the file. It has no
        policies: there is no network."""
        stdio: Stdio = part.stdio
        is_stateless = self._model.session_routing == "Stateless"
        max_line = byte_size(self._model.max_answer_size or MAX_LINE)
        variables = [sorted((each or {}).items()) for each in (stdio.env, stdio.env_from)]
        content = repr((stdio.cmd, stdio.args, variables, is_stateless, max_line)).encode()
        digest = blake2b(content, digest_size=16).hexdigest()
        self._backends.servers[digest] = StdioServer(digest, part.name, stdio, is_stateless, max_line)
        key = self.part(part.name)
        self._backends.made[key] = backend_pb2.Backend(
            static=backend_pb2.StaticBackend(unix_path=self._backends.socket)
        )
        return [Server(part.name, key, f"/{digest}", STDIO)]

    def problem(self, text: str) -> None:
        self._backends.problems.append((self._path, text))


def _key(name: str) -> str:
    return f"backend/gatewaybackend/{NAMESPACE}/{name}"


def _digest(policies: Mapping[str, policy_pb2.Policy]) -> str:
    """Distinguishes backends of one name by their policies."""
    content = b"".join(policies[name].SerializeToString(deterministic=True) for name in sorted(policies))
    return blake2b(content, digest_size=6).hexdigest()
