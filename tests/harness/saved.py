"""Files as editors and tools save them: at once, so that no reader meets a part of one.

`Path.write_text` empties a file first. On a machine that is busy enough somebody reads the empty file in between, and
is right to take it at its word.
"""

from __future__ import annotations

import os
from pathlib import Path


def save(file: Path, text: str) -> None:
    """Replace the content of a file that others read, or write a new one."""
    draft = file.with_name(f".{file.name}.draft")
    draft.write_text(text)
    os.replace(draft, file)
