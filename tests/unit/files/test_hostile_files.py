"""A bad file beside good ones, for each that reads configuration: others act, it is named, without it all is well.

Whole processes decode what is long, as they do in the product.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane.lint import bounded
from controlplane.lint.bounded import Request
from controlplane.sources import aside, decode, directory, tree
from dataplane.agent import file_source
from dataplane.agent.file_source import FileSource
from dataplane.agent.reader_process import ReaderProcess
from dataplane.telemetry.metrics import Metrics
from tests.harness.patience import PATIENCE
from tests.harness.waiting import until
from tests.unit.agent.test_file_source import Applied, bind, text
from tests.unit.sources.test_directory import Seen

pytestmark = pytest.mark.process

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {{name: a}}\nspec: {{ports: [{{port: {}}}]}}\n"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def large(path: Path) -> None:
    path.touch()
    os.truncate(path, 100_000_000)


def aliases(path: Path) -> None:
    rows = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)]
    path.write_text(f"a0: &a0 [1]\n{''.join(rows)}")


def garbage(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 1000)


def deep(path: Path) -> None:
    path.write_text("{a: " * 50_000)


def keys(path: Path) -> None:
    path.write_text("".join(f"k{number}: {number}\n" for number in range(100_000)))


def digits(path: Path) -> None:
    path.write_text(f"a: {'0' * 200_000}x\n")


BAD: dict[Callable[[Path], None], str] = {
    pipe: "it is a named pipe, and no regular file",
    large: "it has 100000000 bytes; the limit is 67108864",
    aliases: "aliases repeat more than 10000 values",
    garbage: "is not UTF-8 text",
    deep: "is nested too deeply",
    keys: "",
    digits: "",
}
"""With words of the problem; empty where each reader has others."""


@pytest.mark.parametrize("make", BAD)
def test_lint_names_it_and_judges_the_others(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "bad.yaml")
    (tmp_path / "good.yaml").write_text(SERVICE.format(0))
    request = Request((str(tmp_path),), frozenset(), None)
    errors = bounded.lint(request).errors
    assert {Path(error.file).name for error in errors} == {"bad.yaml", "good.yaml"}
    assert any(BAD[make] in error.message for error in errors if error.file.endswith("bad.yaml"))
    (tmp_path / "bad.yaml").unlink()
    (tmp_path / "good.yaml").write_text(SERVICE.format(80))
    assert bounded.lint(request).errors == ()


def port(seen: Seen) -> int:
    (item,) = seen.objects.values()
    found = item.spec.ports[0].port  # type: ignore[attr-defined]
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize("make", BAD)
async def test_a_folder_names_it_and_other_edits_act(make: Callable[[Path], None], tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(SERVICE.format(80))
    seen, pieces = Seen(), aside.Pieces(decode.decode)
    state = tree.Tree(pieces.decode, decode.with_generation)
    source = directory.Directory(tmp_path, state, pieces, aside.Decoder())
    task = asyncio.create_task(source.run(seen))
    try:
        await seen.until(lambda: bool(seen.objects) and source.synced.is_set())
        make(bad)
        good.write_text(SERVICE.format(81))
        await seen.until(lambda: port(seen) == 81)
        await until(lambda: bool(source.problems()), "a problem")
        assert {problem.file for problem in source.problems()} == {"bad.yaml"}
        assert any(BAD[make] in problem.message for problem in source.problems())
        good.write_text(SERVICE.format(82))
        await seen.until(lambda: port(seen) == 82)
        bad.unlink()
        await until(lambda: not source.problems(), "no problem")
        good.write_text(SERVICE.format(83))
        await seen.until(lambda: port(seen) == 83)
    finally:
        task.cancel()
        await asyncio.wait({task})


@pytest.mark.parametrize("make", BAD)
async def test_a_proxy_alone_names_it_and_keeps_what_was_good(
    make: Callable[[Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, draft = tmp_path / "c.yaml", tmp_path / "draft"
    file.write_text(text(1))
    reader, applied = ReaderProcess(), Applied()
    first = await asyncio.to_thread(file_source.read, file, (), reader)
    source = FileSource(file, first, applied, Metrics.in_memory(), (), reader)
    task = asyncio.create_task(source.run())
    try:
        assert await applied.wait_for(1) == bind(1)
        make(draft)
        with caplog.at_level(logging.ERROR):
            draft.rename(file)
            async with asyncio.timeout(PATIENCE):
                await until(lambda: any("last good configuration stays" in line for line in caplog.messages), "a line")
        assert all(line.startswith(str(file)) for line in caplog.messages)
        assert any(BAD[make] in line for line in caplog.messages)
        file.unlink()
        file.write_text(text(2))
        assert await applied.wait_for(2) == bind(2)
    finally:
        task.cancel()
        await asyncio.wait({task})
