"""A fuzzing session over several targets: what `scripts/fuzz` runs.

Each target gets a process of its own (`tests.fuzz.run`), that begins with the committed corpus and the seeds. What
breaks a promise is printed with its bytes and the command that replays it, and left in `.fuzz/`. With `--keep`, inputs
that reach what the corpus does not are added to it, after libFuzzer has thrown out what is superfluous.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz import targets
from tests.harness import seeds

ROOT = Path(__file__).resolve().parents[2]
FOUND = ROOT / ".fuzz"
MOST_BYTES = 2048
"""Of an input that is kept: the corpus is replayed in each run of the tests."""
MOST_FILES = 36
"""For each target."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description="Fuzz the targets of tests/fuzz.")
    parser.add_argument("--seconds", type=int, default=300, help="for all targets together (default 300)")
    parser.add_argument("--seed", type=int, help=f"replay a session (default: {seeds.SEED}, or a new one)")
    parser.add_argument("--rounds", type=int, default=1, help="parts of each target's time, with seeds of their own")
    parser.add_argument("--keep", action="store_true", help="add what reaches new code to tests/fuzz/corpus")
    parser.add_argument("target", nargs="*", help=f"of {', '.join(targets.PACKAGES)}; default: all")
    options = parser.parse_args(argv)
    names = options.target or list(targets.PACKAGES)
    unknown = set(names) - set(targets.PACKAGES)
    if unknown:
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    if importlib.util.find_spec("atheris") is None:
        print(
            "scripts/fuzz: atheris is not made for this system; the corpus is replayed by scripts/test", file=sys.stderr
        )
        return 2
    if options.seed is not None:
        os.environ[seeds.SEED] = str(options.seed)
    print(f"seed    {seeds.seed()}", flush=True)
    seconds = max(options.seconds // len(names) // options.rounds, 1)
    return max([fuzz(name, seconds, options.rounds, options.keep) for name in names])


def fuzz(name: str, seconds: int, rounds: int, keep: bool) -> int:
    """Fuzz one target, each round for so long; 0 when nothing was found. What a round reached the next begins with."""
    with tempfile.TemporaryDirectory(prefix=f"fuzz-{name}-") as folder:
        work = Path(folder)
        inputs = work / "inputs"
        inputs.mkdir()
        for data in (*targets.load(name).SEEDS, *(path.read_bytes() for path in targets.corpus(name))):
            (inputs / _name_of(data)).write_bytes(data)
        code = max([_round(name, number, seconds, work, inputs) for number in range(rounds)])
        if keep and not code:
            _keep(name, work, inputs)
        return 1 if code else 0


def _round(name: str, number: int, seconds: int, work: Path, inputs: Path) -> int:
    found = FOUND / name
    found.mkdir(parents=True, exist_ok=True)
    before = set(found.iterdir())
    seed = seeds.rolls("fuzz", name, number).randrange(1, seeds.LIMIT)  # libFuzzer draws one of its own for 0
    arguments = [f"-max_total_time={seconds}", f"-seed={seed}", f"-artifact_prefix={found}/", str(inputs)]
    code, output = _run(name, work, "-timeout=60", *arguments)
    _report(name, seconds, code, output, sorted(set(found.iterdir()) - before))
    return code


def _run(name: str, work: Path, *arguments: str) -> tuple[int, str]:
    """libFuzzer calls its own program again to merge: that program is a script."""
    program = work / f"fuzz-{name}"
    program.write_text(f'#!/bin/sh\ncd "{ROOT}" && exec "{sys.executable}" -m tests.fuzz.run {name} "$0" "$@"\n')
    program.chmod(0o755)
    done = subprocess.run([program, *arguments], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    return done.returncode, (done.stdout + done.stderr).decode("utf-8", "replace")


def _report(name: str, seconds: int, code: int, output: str, found: list[Path]) -> None:
    lines = [line for line in output.splitlines() if not line.startswith(("INFO: Instrumenting", "#"))]
    if not code:
        runs = next((line for line in reversed(lines) if line.startswith("Done ")), "done")
        print(f"ok      {name}: {runs}", flush=True)
        return
    start = next((n for n, line in enumerate(lines) if "=== Uncaught" in line), max(len(lines) - 30, 0))
    print(f"FAILED  {name} within {seconds} s")
    print("\n".join(line[:2000] for line in lines[start : start + 40]))
    for path in found:
        data = path.read_bytes()
        print(f"input   {data!r}\nhex     {data.hex()}")
        print(f"replay  .venv/bin/python -m tests.fuzz.replay {name} {path.relative_to(ROOT)}", flush=True)


def _keep(name: str, work: Path, inputs: Path) -> None:
    """Add to the corpus what libFuzzer's merge finds to reach more than the corpus and the seeds do."""
    merged, small = work / "merged", work / "small"
    merged.mkdir()
    small.mkdir()
    old = [*targets.load(name).SEEDS, *(path.read_bytes() for path in targets.corpus(name))]
    for data in old:
        (merged / _name_of(data)).write_bytes(data)
    for path in inputs.iterdir():
        if path.stat().st_size <= MOST_BYTES:
            (small / path.name).write_bytes(path.read_bytes())
    code, output = _run(name, work, "-merge=1", str(merged), str(small))
    if code:
        raise RuntimeError(f"merging the corpus of {name} failed:\n{output[-3000:]}")
    known = {_name_of(data) for data in old}
    new = sorted((path for path in merged.iterdir() if path.name not in known), key=lambda path: path.stat().st_size)
    folder = targets.CORPUS / name
    folder.mkdir(parents=True, exist_ok=True)
    room = max(MOST_FILES - len(targets.corpus(name)), 0)
    for path in new[:: max(-(-len(new) // room), 1)] if room else ():
        data = path.read_bytes()
        (folder / _name_of(data)).write_bytes(data)
    print(f"kept    {name}: {len(new)} new inputs, or as many of all sizes as there is room for ({room})")


def _name_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
