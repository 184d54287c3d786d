"""`gatewright.dataclass` beside the standard library's: classes of both, made of the same text, behave alike."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import weakref
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar, Generic, TypeVar  # noqa: F401  (for the classes below)

import pytest

from gatewright import dataclass as ours

T = TypeVar("T")
MAKERS: dict[str, Any] = {"library": dataclasses.dataclass, "ours": ours.dataclass}

CLASSES = """
@dataclass(frozen=True, slots=True)
class Nothing:
    pass

@dataclass(frozen=True, slots=True)
class One:
    '''Some text.'''
    only: object

@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 2
    secret: str = field(default="s3cr3t", repr=False)
    beside: int = field(default=0, compare=False)
    kinds: ClassVar[int] = 7

    @property
    def both(self) -> int:
        return self.x + self.y

@dataclass(slots=True)
class Mutable:
    name: str
    values: list = field(default_factory=list)
    count: int = field(init=False, default=3)
    made: dict = field(init=False, default_factory=dict)
    late: int = field(init=False)

@dataclass(slots=True, eq=False, weakref_slot=True)
class Entity:
    name: str = "e"

@dataclass(frozen=True)
class Loose:
    x: int
    made: list = field(default_factory=list, hash=False)
    fixed: int = field(init=False, default=5)

@dataclass(frozen=True, slots=True)
class Cached:
    x: int
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self):
        object.__setattr__(self, "_hash", hash(self.x) + 1)

    def __hash__(self):
        return self._hash

@dataclass(frozen=True, slots=True)
class Written:
    x: int

    def __repr__(self):
        return "mine"

    def __eq__(self, other):
        return isinstance(other, Written) and self.x % 2 == other.x % 2

@dataclass(slots=True)
class Base:
    a: int
    b: int = 1

@dataclass(slots=True)
class Derived(Base):
    b: int = 2
    c: str = "c"

@dataclass(frozen=True, slots=True)
class Of(Generic[T]):
    item: T

@dataclass
class Chain:
    next: object = None
"""


def made(by: str) -> dict[str, Any]:
    """The classes. Pickles find them where they say they are: in this module."""
    scope: dict[str, Any] = {**globals(), "dataclass": MAKERS[by], "__name__": __name__}
    exec(compile(CLASSES, "<classes>", "exec", dont_inherit=True, flags=annotations.compiler_flag), scope)
    return scope


LIBRARY, OURS = made("library"), made("ours")


def outcome(act: Callable[[dict[str, Any]], object], classes: dict[str, Any]) -> object:
    """What it gives, or how it fails."""
    try:
        found = act(classes)
    except Exception as error:
        return type(error), str(error)
    return found


ACTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "repr": lambda c: repr(
        [c["Nothing"](), c["One"]("a"), c["Point"](1), c["Mutable"]("m").values, c["Derived"](1), c["Loose"](1, [2])]
    ),
    "repr of itself": lambda c: _looped(c["Chain"]()),
    "repr that is written": lambda c: repr(c["Written"](1)),
    "repr without a value": lambda c: repr(c["Mutable"]("m")),
    "too few": lambda c: c["Point"](),
    "too many": lambda c: c["One"](1, 2),
    "an unknown one": lambda c: c["One"](other=2),
    "twice": lambda c: c["One"](2, only=2),
    "by name": lambda c: (c["Point"](y=4, x=3).both, c["Point"](1, secret="z").secret, c["Point"].kinds),
    "equal": lambda c: [c["Point"](1) == c["Point"](1, beside=9), c["Nothing"]() == c["Nothing"](), c["Point"](1) == 1],
    "unequal": lambda c: [
        c["Point"](1) != c["Point"](2),
        c["Base"](1) == c["Derived"](1, 1),
        c["One"](1) == c["One"](2),
    ],
    "equality that is written": lambda c: (c["Written"](1) == c["Written"](3), hash(c["Written"](1)) == hash((1,))),
    "equality of entities": lambda c: c["Entity"]() == c["Entity"](),
    "hash": lambda c: [hash(c["Point"](1, 2, "x", 9)), hash(c["Nothing"]()), hash(c["One"]("a")), hash(c["Loose"](1))],
    "hash that is written": lambda c: (hash(c["Cached"](4)), c["Cached"](4) == c["Cached"](4)),
    "hash of what is mutable": lambda c: hash(c["Base"](1)),
    "hash of an entity": lambda c: isinstance(hash(c["Entity"]()), int),
    "set what is frozen": lambda c: setattr(c["Point"](1), "x", 2),
    "set what is frozen, without slots": lambda c: setattr(c["Loose"](1), "x", 2),
    "delete what is frozen": lambda c: delattr(c["Point"](1), "x"),
    "set": lambda c: _set_all(c["Mutable"]("m")),
    "set what there is not": lambda c: setattr(c["Base"](1), "z", 1),
    "made for each": lambda c: c["Mutable"]("m").values is c["Mutable"]("m").values,
    "given instead of made": lambda c: c["Mutable"]("m", [1]).values,
    "not given": lambda c: (c["Mutable"]("m").count, c["Mutable"]("m").made, c["Loose"](1).fixed),
    "without a value": lambda c: c["Mutable"]("m").late,
    "inherited": lambda c: (c["Derived"](0).a, c["Derived"](0).b, c["Derived"](0, 1, "d").c),
    "generic": lambda c: (c["Of"](1).item, c["Of"].__parameters__, c["Of"](2) == c["Of"](2)),
    "replace": lambda c: repr(dataclasses.replace(c["Point"](1, secret="k"), y=5)),
    "replace what is not given": lambda c: dataclasses.replace(c["Mutable"]("m"), count=1),
    "asdict": lambda c: dataclasses.asdict(c["Derived"](1)),
    "fields": lambda c: {
        name: [(f.name, f.init, f.repr, f.compare, f.type) for f in dataclasses.fields(c[name])]
        for name in ("Nothing", "One", "Point", "Mutable", "Derived", "Loose")
    },
    "copy": lambda c: (copy.copy(c["Point"](1, 7, "q")) == c["Point"](1, 7, "q"), copy.deepcopy(c["Base"](1)).a),
    "weak": lambda c: weakref.ref(c["Entity"]()) is not None,
    "not weak": lambda c: weakref.ref(c["Base"](1)),
    "match": lambda c: (c["Point"].__match_args__, c["Mutable"].__match_args__, c["Derived"].__match_args__),
    "slots": lambda c: [c[name].__slots__ for name in ("Nothing", "One", "Point", "Mutable", "Entity", "Derived")],
    "dictionary": lambda c: [hasattr(c["Point"](1), "__dict__"), c["Loose"](1).__dict__],
    "signature": lambda c: [list(inspect.signature(c[name]).parameters) for name in ("Point", "Mutable", "Derived")],
    "names": lambda c: [
        (c[name].__name__, c[name].__qualname__, c[name].__module__, c[name].__init__.__qualname__) for name in ("One",)
    ],
    "text": lambda c: c["One"].__doc__,
}


def _looped(chain: Any) -> str:
    chain.next = chain
    return repr(chain)


def _set_all(mutable: Any) -> tuple[object, ...]:
    mutable.name, mutable.late = "n", 8
    return mutable.name, mutable.late, repr(mutable)


@pytest.mark.parametrize("act", ACTS)
def test_it_is_as_with_the_library(act: str) -> None:
    wanted, found = outcome(ACTS[act], LIBRARY), outcome(ACTS[act], OURS)
    assert found == wanted


@pytest.mark.parametrize("name", ["Point", "Base", "Loose", "Cached"])
def test_a_pickle_comes_back(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cls = OURS[name]
    monkeypatch.setitem(globals(), name, cls)
    again = pickle.loads(pickle.dumps(cls(6)))
    assert again == cls(6) and type(again) is cls and hash(again.x if name != "Base" else again.a) == 6


def test_what_a_subclass_of_frozen_adds_is_frozen() -> None:
    wider: Any = type("Wider", (OURS["Point"],), {})  # with a dictionary
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'more'"):
        wider(1).more = 2


def test_classes_of_one_shape_do_not_mix_up_their_names() -> None:
    @ours.dataclass(slots=True)
    class First:
        self_: int
        values: list[int] = field(default_factory=list)

    @ours.dataclass(slots=True)
    class Second:
        a: int
        b: set[int] = field(default_factory=lambda: {1})

    assert (First(1).self_, First(1).values, First(values=[2], self_=3)) == (1, [], First(3, [2]))
    assert (Second(1).a, Second(1).b) == (1, {1})
    with pytest.raises(TypeError, match=r"Second\.__init__\(\) missing 1 required positional argument: 'a'"):
        Second()  # type: ignore[call-arg]


REFUSED = {
    "by keyword alone": ("@dataclass\nclass A:\n  x: int = field(kw_only=True)", "kw_only is not supported"),
    "passed on": ("@dataclass\nclass A:\n  x: dataclasses.InitVar[int]", "InitVar is not supported"),
    "order": ("@dataclass(order=True)\nclass A:\n  x: int", "unexpected keyword argument 'order'"),
    "in the wrong order": ("@dataclass\nclass A:\n  x: int = 1\n  y: int", "a field without a default follows"),
    "frozen by hand": (
        "@dataclass(frozen=True)\nclass A:\n  def __setattr__(self, name, value): ...",
        "A writes __setattr__ and is frozen",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_cannot_do_is_refused(case: str) -> None:
    text, why = REFUSED[case]
    with pytest.raises(TypeError, match=why):
        exec(text, {"dataclass": ours.dataclass, "field": field, "dataclasses": dataclasses, "__name__": __name__})


def test_a_mutable_default_is_refused() -> None:
    with pytest.raises(ValueError, match="mutable default"):
        exec("@dataclass\nclass A:\n  x: list = []", {"dataclass": ours.dataclass, "__name__": __name__})
