"""Run one input again: `python -m tests.fuzz.replay TARGET FILE...`. A broken promise is a traceback."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.fuzz import targets


def main(argv: list[str]) -> None:
    name, *files = argv
    check = targets.load(name).check
    for file in files:
        check(Path(file).read_bytes())
        print(f"ok      {name} {file}")


if __name__ == "__main__":
    main(sys.argv[1:])
