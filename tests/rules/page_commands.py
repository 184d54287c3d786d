"""The commands that pages tell readers to type, collected: from blocks of `sh`, from indented blocks, and between
backquotes in a sentence, where they begin with a program that is known here."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("README.md")],
    key=lambda page: page.relative_to(ROOT).as_posix(),
)

OURS = ("gatewright", "gatewright-proxy")
PROGRAMS = frozenset(
    {*OURS, "curl", "docker", "grpcurl", "helm", "kubectl", "npx", "openssl", "pip", "python", "sed", "source", "head"}
)
"""Programs by which a command in a sentence is recognised, and an indented one; `scripts/NAME` is one as well."""

_BETWEEN = ("&&", "||", "|", "&", ";")
_FENCE = re.compile(r"\s*```(\w*)")
_SPAN = re.compile(r"`([^`\n]+)`")
_CONTINUED = re.compile(r"\\$")


@dataclass(frozen=True, slots=True)
class Command:
    """What a page says to type. `is_block`: it stands in a block of its own."""

    page: str
    text: str
    is_block: bool

    def calls(self) -> Iterator[list[str]]:
        """The words of each program that it starts, as a shell splits them; without comments and redirections."""
        words: list[str] = []
        for word in shlex.split(self.text, comments=True):
            if word in _BETWEEN:
                yield _call(words)
                words = []
            else:
                words.append(word)
        if words:
            yield _call(words)


def _call(words: list[str]) -> list[str]:
    """Its program without the folder of the environment; nothing behind `>`."""
    end = words.index(">") if ">" in words else len(words)
    return [words[0].removeprefix(".venv/bin/"), *words[1:end]]


def is_program(word: str) -> bool:
    return word.removeprefix(".venv/bin/") in PROGRAMS or word.startswith("scripts/")


def commands(page: Path) -> list[Command]:
    """All of a page, in order."""
    name, text = page.relative_to(ROOT).as_posix(), page.read_text()
    blocks = [Command(name, each, True) for block in _blocks(text) for each in _of_block(block)]
    spans = [Command(name, each, False) for each in _SPAN.findall(_prose(text)) if _is_span(each)]
    return blocks + spans


def _is_span(text: str) -> bool:
    first, _, rest = text.partition(" ")
    return bool(rest) and is_program(first)


def _blocks(text: str) -> Iterator[list[str]]:
    """The lines of each block of `sh`, and of each indented block that begins with a program."""
    for language, lines in every_block(text):
        if language == "sh" or (language is None and is_program(lines[0].split()[0])):
            yield lines


def every_block(text: str) -> Iterator[tuple[str | None, list[str]]]:
    """(language, lines); None for the language of an indented block, which follows an empty line."""
    fence: str | None = None
    block: list[str] = []
    was_empty = True
    for line in [*text.splitlines(), ""]:
        mark = _FENCE.match(line)
        is_indented = line.startswith("    ") and (bool(block) or was_empty)
        if fence is None and block and not is_indented:
            yield None, block
            block = []
        if mark and fence is not None:
            yield fence, block
            fence, block = None, []
        elif mark:
            fence = mark[1]
        elif fence is not None:
            block.append(line)
        elif is_indented:
            block.append(line[4:])
        was_empty = not line


def _prose(text: str) -> str:
    """A page without its blocks."""
    without = re.sub(r"^\s*```.*?^\s*```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(?<=\n\n)(?: {4}[^\n]*\n)+", "", without)


def _of_block(lines: list[str]) -> Iterator[str]:
    """Commands with the lines that they go on in; what is printed is left out where commands begin with `$ `."""
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    waiting = ""
    for line in lines:
        waiting += line
        if _CONTINUED.search(line):
            waiting = waiting[:-1]
        elif _is_whole(waiting):
            if waiting.strip():
                yield waiting.strip()
            waiting = ""
        else:
            waiting += "\n"
    assert not waiting.strip(), f"a command without its end: {waiting}"


def _is_whole(text: str) -> bool:
    try:
        shlex.split(text, comments=True)
    except ValueError:  # a quotation goes on
        return False
    return True
