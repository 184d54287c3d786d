"""A folder as the control plane sees it: its objects in a program, and the collections of that to ask.

Every judgement of lint about several objects is read from here, so that it says what `status` would. What comes from
elsewhere has stand-ins (`elsewhere`), which no judgement is about. Nothing is served, and no proxy is known.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from controlplane.derive import Context
from controlplane.facts import fact_of
from controlplane.lint import elsewhere
from controlplane.translate.graph import Collections
from controlplane.translate.keys import ObjectKey as Key
from controlplane.translate.program import Program
from gatewright.api.lint.lint import Folder
from gatewright.api.schema.metadata import ObjectKey


class World:
    """One state of a folder. Nothing changes it."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.objects = folder.objects
        self.stand_ins = elsewhere.stand_ins(folder)
        self._program = Program(lambda: 0.0)
        self._program.apply(map(fact_of, (*folder.objects.values(), *self.stand_ins.values())))
        self._namespaces = {key.namespace for key in folder.known}
        grants = (key for key in folder.known if key.kind == "ReferenceGrant")
        self._unread_grants = {key.namespace for key in grants if key not in folder.objects}

    @property
    def graph(self) -> Collections:
        return self._program.collections

    def context(self) -> Context:
        """For functions of the graph that look something up."""
        return Context(sys.maxsize)

    def sees_grants(self, namespace: str) -> bool:
        """Whether all ReferenceGrants of a namespace are known: not of namespaces without an object in the files, nor
        where a grant has a mistake."""
        return self.folder.whole and namespace in self._namespaces and namespace not in self._unread_grants

    def is_there(self, key: ObjectKey) -> bool:
        """Whether the files have the object, without a mistake in it."""
        return key in self.objects

    def is_complete(self, key: ObjectKey) -> bool:
        """Whether all objects of that kind and namespace should be in the files, so that what is not is missing."""
        return (
            self.folder.whole
            and key.kind not in self.folder.elsewhere
            and (not key.namespace or key.namespace in self._namespaces)
        )

    def statuses(self) -> Iterator[tuple[ObjectKey, dict[str, object]]]:
        """Of the files' objects."""
        for key in self.objects:
            body = self._program.status(*key)
            if body is not None:
                yield key, body


def key_of(kind: str, key: Key) -> ObjectKey:
    """A key of a collection as lint names objects."""
    return ObjectKey(kind, key.namespace, key.name)
