"""`gatewright lint` without the command: files are read by `gatewright.api.lint`, and judged by the control plane.

Called by the CLI. One program answers `status` and `lint`: its collections say what is wrong between objects, and this
package says at which field. Nothing is served, no cluster is asked.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controlplane.lint import attachments, endpoints, losses, references, remaining, serving, sharing
from controlplane.lint.world import World
from gatewright.api.lint import lint as files
from gatewright.api.lint.lint import Document, Folder, Found
from gatewright.api.lint.report import Report
from gatewright.api.text.problem import Problem

LOOKS: Final[tuple[Callable[[World], Iterator[Found]], ...]] = (
    serving.gateways,
    attachments.unattached,
    references.unusable,
    references.withheld,
    references.leading_back,
    serving.without_backends,
    endpoints.of_services,
    attachments.targets,
    losses.of_policies,
    losses.of_rules,
    sharing.certificates,
)
"""What is looked for; whatever conditions say beside that is added as they say it."""


def judge(folder: Folder) -> list[Found]:
    """What there is to say between the objects of a folder."""
    if not folder.objects:
        return []
    world = World(folder)
    found = [each for look in LOOKS for each in look(world)]
    reported = folder.erroneous | {key for _, key, _ in found}
    return [*found, *remaining.conditions(world, reported)]


def lint(documents: Iterable[Document], log_modules: Collection[str] | None = None) -> list[Problem]:
    """As `gatewright.api.lint.lint.lint`, with what there is to say between objects."""
    with _no_cycles():
        return files.lint(documents, log_modules, judge)


def lint_paths(
    paths: Iterable[str | Path],
    elsewhere: Collection[str] = (),
    reading: Callable[[str], None] = files.quietly,
) -> Report:
    """As `gatewright.api.lint.lint.lint_paths`, with what there is to say between objects."""

    def judging(folder: Folder) -> Iterable[Found]:
        reading("all objects together")
        return judge(folder)

    with _no_cycles():
        return files.lint_paths(paths, elsewhere=elsewhere, judge=judging, reading=reading)


def examine(documents: Iterable[Document]) -> Report:
    """As `lint`, with the counts."""
    with _no_cycles():
        return files.examine(documents, judge=judge)


@contextmanager
def _no_cycles() -> Iterator[None]:
    """What is made lives until the report is: looking through it for cycles again and again takes half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
