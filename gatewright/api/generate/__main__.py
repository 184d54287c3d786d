"""`python -m gatewright.api.generate [--check]`: write what is generated from the models, or say what is out of date.

Called by scripts/gen-api and scripts/check, in the root of the repository. It writes what FOLDERS, PAGES and
SECTIONS name, removes what is generated no more from the folders, and prints the size of each file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from gatewright.api.generate import backends, crds, editor, policies, reference, waiting
from gatewright.variables import page, schema

FOLDERS: Final = {
    "manifests/crds": crds.all_crds,
    "schemas": editor.all_schemas,
    "docs/reference": reference.all_pages,
}
"""Folder, in which nothing else lies, to what makes its files: file name to text."""

PAGES: Final = {
    "docs/backends.md": backends.page,
    "docs/unsupported.md": waiting.page,
    "docs/variables.md": page.page,
    "schemas/variables.json": schema.text,
}
"""File among others to what makes its text."""

SECTIONS: Final = {"docs/policies.md": policies.within}
"""Page that is written by hand, to what makes of its text one with a current section."""


def outputs() -> dict[Path, str]:
    """Every generated file, by its path below the root, which is the current folder."""
    files = {Path(folder, name): text for folder, make in FOLDERS.items() for name, text in make().items()}
    files |= {Path(name): make() for name, make in PAGES.items()}
    return files | {Path(name): make(Path(name).read_text()) for name, make in SECTIONS.items() if Path(name).is_file()}


def stale(root: Path, files: dict[Path, str]) -> list[Path]:
    """Files that differ from what is generated, are missing, or are generated no more."""
    differing = [path for path, text in files.items() if _text(root / path) != text]
    present = (path.relative_to(root) for folder in FOLDERS for path in Path(root, folder).glob("*"))
    return sorted([*differing, *(path for path in present if path not in files)])


def main(arguments: list[str]) -> int:
    """0 when all is current or was written; 1 when `--check` finds something else."""
    root, files = Path.cwd(), outputs()
    out_of_date = stale(root, files)
    if "--check" in arguments:
        sys.stdout.writelines(f"{path} is not current: run scripts/gen-api\n" for path in out_of_date)
        return 1 if out_of_date else 0
    for path in out_of_date:
        if path not in files:
            (root / path).unlink()
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
        sys.stdout.write(f"{len(text.encode()):>9,} bytes  {path}\n")
    return 0


def _text(path: Path) -> str | None:
    return path.read_text() if path.is_file() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
