"""How a kind of backend becomes wire, for GatewayBackends and for backends of the standalone file alike.

A row (`registry.ROWS`) is given the model of its kind and `BackendReferences`, which know what the names in it lead to.
It asks neither a cluster nor a file itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple, Protocol

from gatewright.api.checks.backend_kinds import BackendKind
from gatewright.api.text.places import Path
from gatewright.wire.v1 import backend_pb2, policy_pb2

Policies = Mapping[str, policy_pb2.Policy]
"""By field of the wire."""


STDIO: Final = "stdio"
"""In place of a protocol: of servers that the proxy starts, in the standalone file."""


class Server(NamedTuple):
    """Something that requests are sent on to. `backend`: key of a Backend; `path`, `protocol`: as the API has them,
    None for the default; `selector`: the name of that which found it, by which policies reach it as well."""

    name: str
    backend: str
    path: str | None = None
    protocol: str | None = None
    selector: str = ""


class Address(NamedTuple):
    """A host, and its port; 0: that of the scheme."""

    host: str
    port: int


class BackendReferences(Protocol):
    """What one backend names leads to: in a cluster, or in the standalone file. What is wrong with it is noted there,
    and does not end the lowering. `path`: where something stands, below the field of the kind."""

    def policies(self, part: str, settings: Any, path: Path) -> Policies:
        """Those of a part. Any: a subset of BackendFull, or the file's form of one."""

    def part(self, name: str) -> str:
        """The key of the Backend that a part with an address of its own gets."""

    def named(self, part: str, reference: Any, port: int | None, path: Path) -> str:
        """The key of the Backend that a part names instead. Any: a `backendRef`, or the file's form of one."""

    def found(self, part: Any, taken: Collection[str]) -> Sequence[Server]:
        """What a part means that has no address and names nothing: what its selector finds, or the command that it
        starts. `taken`: names that are given. Any: the part, or the file's form of it."""

    def problem(self, text: str) -> None:
        """Something is wrong with what the backend names."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """A backend as wire."""

    message: backend_pb2.Backend
    parts: Mapping[str, backend_pb2.Backend] = field(default_factory=dict)
    """Backends that come with it, by name of the part."""
    leads: tuple[tuple[str, str], ...] = ()
    """All that it sends requests on to: the name, and the key of the Backend."""
    sections: tuple[str, ...] = ()
    """What policies may name of it."""
    warning: str = ""
    """What is valid and still not meant; "": nothing."""
    address: Address | None = None
    """Of what is one host: callers look whether it is an address of the proxy itself."""


class Kind(ABC):
    """One row. Models are those of its field: each kind knows its own, so here they are Any."""

    facts: BackendKind

    def of_file(self, written: Any) -> Any:
        """The model that the standalone file's field becomes."""
        return written

    def unnamed(self, model: Any) -> str:
        """What a backend is called that has no name in the file. It has a colon, which no name has, and is another one
        for another content."""
        return f"{self.facts.name}:{blake2b(model.model_dump_json().encode(), digest_size=6).hexdigest()}"

    @abstractmethod
    def lowered(self, model: Any, policies: Policies, references: BackendReferences) -> Lowered:
        """The backend. `policies`: its own."""
