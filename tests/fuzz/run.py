"""One atheris run of one target: `python -m tests.fuzz.run TARGET PROGRAM [libFuzzer's arguments]`, for `session`.

Nothing is caught here: an exception of any kind ends the run, libFuzzer writes the input down, and the exit code tells.
PROGRAM is what libFuzzer calls to run itself again.
"""

from __future__ import annotations

import sys

import atheris

from tests.fuzz import targets


def main(argv: list[str]) -> None:
    name, program, *arguments = argv
    with atheris.instrument_imports(include=list(targets.PACKAGES[name])):
        target = targets.load(name)
    atheris.Setup([program, f"-max_len={target.LONGEST}", *arguments], target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
