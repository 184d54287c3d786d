"""Gives one module a fault when it is imported; the files of the working tree stay as they are.

`plant(module, file, text)` for this process. Processes that a test starts inherit the environment: `sitecustomize.py`,
in the folder `hook` on their PYTHONPATH, calls `from_environment` before anything else is imported.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

VARIABLE = "GATEWRIGHT_MUTANT"
"""Names a file of JSON: module, file, text."""


class _Loader(SourceFileLoader):
    """Reads this text instead of the file's; no bytecode is read or written."""

    def __init__(self, module: str, file: str, text: str) -> None:
        super().__init__(module, file)
        self.text = text

    def get_data(self, path: str | os.PathLike[str] | bytes) -> bytes:  # type: ignore[override]
        return self.text.encode()

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self.text, self.path)
        return code


class Finder(MetaPathFinder):
    """Gives one module another loader."""

    def __init__(self, loader: SourceFileLoader) -> None:
        self.loader = loader

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.loader.name:
            return None
        file = self.loader.path
        folders = [str(Path(file).parent)] if file.endswith("/__init__.py") else None
        return spec_from_file_location(fullname, file, loader=self.loader, submodule_search_locations=folders)


def plant(module: str, file: str, text: str) -> None:
    """From now on importing `module`, whose file this is, gives what `text` says."""
    assert module not in sys.modules
    sys.meta_path.insert(0, Finder(_Loader(module, file, text)))


def from_environment() -> None:
    """Plant what the environment names, if anything."""
    name = os.environ.get(VARIABLE)
    if name:
        plant(**json.loads(Path(name).read_text()))


def module_of(file: str) -> str:
    """`dataplane/net/tcp.py` is dataplane.net.tcp."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
