"""The recorded answers about strategic merges are those of Kubernetes' own code.

python -m tests.cluster.test_strategic_merge     writes tests/unit/deploy/merge_answers.json
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.unit.deploy.merge_rows import ANSWERS, ROWS, answers, question

pytestmark = [pytest.mark.needs("go"), pytest.mark.slow]


def asked() -> dict[str, Any]:
    """Builds the oracle, once for Go's own cache."""
    questions = json.dumps([question(row) for row in ROWS])
    command = ["go", "run", "-mod=readonly", "."]
    folder = ROOT / "tests" / "cluster" / "strategic_merge"
    done = subprocess.run(command, input=questions, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return {row.name: answer for row, answer in zip(ROWS, json.loads(done.stdout), strict=True)}


def test_kubernetes_still_answers_as_recorded() -> None:
    assert asked() == answers()


if __name__ == "__main__":
    rows = [f"{json.dumps(name)}: {json.dumps(answer, sort_keys=True)}" for name, answer in sorted(asked().items())]
    ANSWERS.write_text("{\n" + ",\n".join(rows) + "\n}\n")
