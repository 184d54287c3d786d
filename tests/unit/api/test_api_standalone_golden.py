"""Golden standalone files: everything that proxies get of one, where it stands in the file, and what they start.

`tests/golden/standalone/<case>.in.yaml` is the file, `<case>.out.yaml` what comes of it. Run with GOLDEN=write to write
it anew, and read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from gatewright.api.standalone import standalone
from gatewright.api.text.problem import path_text
from tests.harness import yamls

FOLDER = Path(__file__).parents[2] / "golden/standalone"
FILES = sorted(FOLDER.glob("*.in.yaml"))


def said(text: str) -> dict[str, Any]:
    loaded = standalone.load(text, "gw.yaml", socket="/run/started.sock")
    assert loaded.problems == ()
    resources = []
    for each in loaded.resources:
        name = each.WhichOneof("kind") or ""
        message = MessageToDict(getattr(each, name), preserving_proto_field_name=True)
        place = loaded.places.get(each.key)
        resources.append({"key": each.key, **({"at": path_text(place)} if place else {}), name: message})
    started = [
        {
            "digest": each.digest,
            "name": each.name,
            "command": [each.stdio.cmd, *each.stdio.args],
            "env": dict(each.stdio.env or {}),
            "stateless": each.is_stateless,
        }
        for each in loaded.servers
    ]
    return {"workers": loaded.settings.workers, "resources": resources, "started": started}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_what_comes_of_a_file(path: Path) -> None:
    found = yamls.dump(said(path.read_text()), sort_keys=False)
    out = path.with_name(path.name.replace(".in.", ".out."))
    if os.environ.get("GOLDEN") == "write":
        out.write_text(found)
    assert found == out.read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.partition(".")[0])
def test_the_same_file_gives_the_same(path: Path) -> None:
    text = path.read_text()
    one, two = standalone.load(text, "a.yaml"), standalone.load(f"# moved\n{text}", "b.yaml")
    assert [*map(str, one.resources)] == [*map(str, two.resources)] and one.places == two.places


def test_there_is_a_case() -> None:
    assert FILES
