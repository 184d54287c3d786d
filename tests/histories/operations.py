"""The steps that histories are made of, as data: hypothesis draws and shrinks lists of them, examples are written down.

A step is a tuple of a name in `OPERATIONS` and its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import strategies as st

from tests.histories import answers, texts, wire
from tests.histories.hand_loop import hand_moved
from tests.histories.planes import without_a_world
from tests.histories.texts import CAN_BE_WRONG, FILES, GONE, NONSENSE, VARIANTS, WRONG, File, Piece
from tests.histories.world import World

Step = tuple[Any, ...]


def _put(world: World, file: str, thing: str, variant: int) -> None:
    """Write an object into a file, in its old place there, or take it out (`GONE`), or write it with an error."""
    pieces = list(world.folder.get(file, File()).pieces)
    places = [index for index, piece in enumerate(pieces) if piece.thing == thing]
    if variant == GONE:
        pieces = [piece for piece in pieces if piece.thing != thing]
    elif places:
        pieces[places[0]] = Piece(thing, variant)
    else:
        pieces.append(Piece(thing, variant))
    world.write(file, pieces)


def _edit(world: World, thing: str, variant: int) -> None:
    """The same in the file that the object is in."""
    files = [name for name, file in sorted(world.folder.items()) if any(piece.thing == thing for piece in file.pieces)]
    _put(world, files[0] if files else "z.yaml", thing, variant)


def _twice(world: World, file: str, thing: str, variant: int) -> None:
    """Write an object once more, at the end of a file."""
    world.write(file, [*world.folder.get(file, File()).pieces, Piece(thing, variant)])


def _mend(world: World, file: str) -> None:
    world.write(file, [piece for piece in world.folder.get(file, File()).pieces if piece.variant >= 0])


def _nonsense(world: World, file: str) -> None:
    world.write(file, [*world.folder.get(file, File()).pieces, Piece("", NONSENSE)])


def _empty(world: World, file: str, turns: int) -> None:
    """An editor that empties a file before it writes it."""
    if file in world.folder:
        pieces = world.folder[file].pieces
        world.write(file, [])
        world.turns(turns)
        world.write(file, pieces)


def _start(world: World) -> None:
    """Back to the first texts of all files."""
    for name in [*world.folder]:
        if name not in texts.START:
            world.remove(name)
    for name, file in texts.START.items():
        world.write(name, file.pieces)


OPERATIONS: dict[str, Callable[..., None]] = {
    "edit": _edit,
    "put": _put,
    "twice": _twice,
    "nonsense": _nonsense,
    "mend": _mend,
    "empty": _empty,
    "start": _start,
    "remove": World.remove,
    "move": World.move,
    "turns": World.turns,
    "rest": World.rest,
    "hold": lambda world, proxy, way: world.hold(world.proxies[proxy], way),
    "pass": lambda world, proxy, way, count: world.pass_on(world.proxies[proxy], way, count),
    "release": lambda world, proxy, way: world.release(world.proxies[proxy], way),
    "cut": lambda world, proxy: world.cut(world.proxies[proxy]),
    "kill worker": lambda world, proxy, index: world.kill_worker(world.proxies[proxy], index),
    "restart agent": lambda world, proxy: world.restart(world.proxies[proxy]),
    "replace controller": World.replace_controller,
    "add controller": World.add_controller,
    "take ports": lambda world, *ports: world.take_ports(frozenset(ports)),
}

_THINGS = st.sampled_from(
    [(name, index) for name, variants in VARIANTS.items() for index in range(len(variants) > 1, len(variants))]
)  # "start" brings the first ones back
_ROUTES = st.sampled_from(
    [(name, index) for name, variants in VARIANTS.items() for index in range(len(variants)) if name.startswith("route")]
)
_LOST = st.sampled_from(
    [(name, GONE) for name in VARIANTS if name != "class"] + [(name, WRONG) for name in CAN_BE_WRONG]
)
_FILE = st.sampled_from(FILES)
_PROXY = st.integers(0, 2)
_WAY = st.sampled_from((wire.DOWN, wire.UP))


def _step(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(name), *arguments)


def _about(name: str, things: st.SearchStrategy[Any], *before: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(st.tuples(*before), things).map(lambda drawn: (name, *drawn[0], *drawn[1]))


_TURNS = _step("turns", st.integers(1, 60))
_AUTHOR = st.one_of(
    _about("edit", _THINGS),
    _about("edit", _ROUTES),
    _about("edit", _LOST),
    _about("put", st.one_of(_THINGS, _LOST), _FILE),
    _about("twice", _THINGS, _FILE),
    _step("nonsense", _FILE),
    _step("mend", _FILE),
    _step("empty", _FILE, st.integers(0, 20)),
    _step("remove", _FILE),
    _step("move", _FILE, _FILE),
    _step("start"),
)
_WIRE = st.one_of(
    _step("hold", _PROXY, _WAY),
    _step("pass", _PROXY, _WAY, st.integers(1, 3)),
    _step("release", _PROXY, _WAY),
    _step("cut", _PROXY),
)
_ACCIDENT = st.one_of(
    _step("kill worker", _PROXY, st.integers(0, 1)),
    _step("restart agent", _PROXY),
    _step("replace controller", st.booleans()),
    _step("add controller"),
    _step("take ports"),
    _step("take ports", st.sampled_from((8080, 8081))),
)
_REST = _step("rest", st.sampled_from((0.02, 0.06, 0.5, 3.0)))
STEPS = st.lists(st.one_of(_AUTHOR, _TURNS, _AUTHOR, _WIRE, _ACCIDENT, _REST), min_size=5, max_size=25)


def run(steps: Iterable[Step]) -> World:
    """Run a history to its end. Raises `world.Violation` when something does not hold."""
    with hand_moved() as loop:
        world = World(loop)
        with without_a_world(answers.ROWS, world.dial):
            try:
                world.begin()
                for name, *arguments in steps:
                    OPERATIONS[name](world, *arguments)
                world.settle()
                world.check_end()
            finally:
                world.end()
    return world
