"""The description of the package on an index page: README.md, whose links to files of the repository become text.

Called by hatchling when it builds a wheel or an sdist. An index page has no folder that a relative link could lead to.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE_LINK: Final = re.compile(r"\[([^\]]*)\]\((?!https?:|mailto:)([^)\s]+)\)")

WHERE: Final = "*Names in parentheses are those of files and folders of the repository.*"


def description(readme: str) -> str:
    """README.md with each relative link as its text and the name of its file, and a line that says where these are."""
    heading, rest = readme.split("\n", 1)
    return f"{heading}\n\n{WHERE}\n" + RELATIVE_LINK.sub(r"\1 (`\2`)", rest)


class DescriptionHook(MetadataHookInterface):
    """The only hook of this file, found by hatchling: `[tool.hatch.metadata.hooks.custom]` of pyproject.toml."""

    def update(self, metadata: dict[str, Any]) -> None:  # Any: the table `[project]`, as hatchling types it
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": description(readme)}
