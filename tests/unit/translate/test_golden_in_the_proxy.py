"""What the golden cases send is what proxies take: each Gateway's resources in the table of a worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from dataplane.backends.registry import KINDS
from dataplane.chain.filter import Env
from dataplane.filters.registry import ROWS
from dataplane.link.buckets import Buckets
from dataplane.table.applier import Applier
from dataplane.table.store import Change
from tests.fakes.calls import FakeCalls
from tests.unit.translate.golden import FOLDER, World, read

CASES = sorted(FOLDER.glob("*.in.yaml"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name.removesuffix(".in.yaml"))
def test_a_proxy_takes_all_also_what_is_to_refuse(path: Path) -> None:
    world = World()
    world.load(read(path))
    for gateway in sorted({owner for owner, _, _ in world.resources}):
        changes = (Change(url, name, data) for (owner, url, name), data in world.resources.items() if owner == gateway)
        applier = Applier(
            ROWS,
            Env(
                clock=lambda: 0.0,
                random=lambda: 0.0,
                calls=FakeCalls(),
                buckets=Buckets.local(),
                spawn=lambda coroutine: coroutine.close(),
            ),
            kinds=KINDS,
        )
        for _ in applier.apply(changes):
            pass
        assert not applier.outcome.refused
