"""Examples that ship with the product, found under the names that the pages give them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

EXAMPLES: Final = "examples"
_PACKAGE: Final = Path(__file__).parents[1]


def place(text: str) -> Path:
    """A file or folder that is named on a command line. `examples/...` means what ships with the product where there is
    nothing of that name here."""
    path = Path(text)
    if path.exists() or path.parts[:1] != (EXAMPLES,) or ".." in path.parts:
        return path
    return example(*path.parts[1:]) or path


def example(*names: str) -> Path | None:
    """In the wheel below this package, else beside it."""
    places = (_PACKAGE.joinpath(EXAMPLES, *names), _PACKAGE.parent.joinpath(EXAMPLES, *names))
    return next((path for path in places if path.exists()), None)
