"""Strategic merge: a part of an object, laid over a generated one. Pure.

The rules are Kubernetes' own (`kubectl patch --type strategic`), with `merge_keys` in place of its definitions:

- maps are merged field by field, a value that is no map or list replaces the one below it, `null` removes it;
- items of a list with a merge key are merged with the item of the same key, or added; other lists are replaced;
- `$patch: delete` removes what it stands in (a map becomes empty, an item goes), `$patch: replace` in a map has the map
  as it is written here, and as an item of a list the list;
- `$retainKeys` in a map names the fields that stay, `$deleteFromPrimitiveList/NAME` values of a list that go.

Order of a merged list: items that are written here come in the order in which they are written here, the others keep
theirs; each of the others stands before the first written one that stood behind it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from controlplane.deploy.merge_keys import PLAIN, Field

Json = dict[str, Any]  # Any: JSON
Path = tuple[str | int, ...]

DIRECTIVE: Final = "$patch"
RETAIN: Final = "$retainKeys"
DELETE_VALUES: Final = "$deleteFromPrimitiveList/"
DEEPEST: Final = 64
"""Levels of an overlay. No object of Kubernetes has as many."""


class MergeError(Exception):
    """An overlay cannot be merged. `path` leads to what is wrong in it."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__(text)
        self.path = path


def merged(original: Json, overlay: Json, field: Field = PLAIN) -> Json:
    """A new object; neither argument is changed. Raises MergeError."""
    return _map(original, overlay, field, ())


def _map(original: Json, overlay: Json, field: Field, path: Path) -> Json:
    if len(path) > DEEPEST:
        raise MergeError(path[:8], f"has more than {DEEPEST} levels")
    if field.replaced and DIRECTIVE not in overlay:
        return _plain_map(overlay, path)
    directive = overlay.get(DIRECTIVE)
    if directive == "delete":
        return {}
    if directive == "replace":
        return _plain_map(overlay, path)
    if directive is not None:
        raise MergeError((*path, DIRECTIVE), "must be delete or replace")
    result = _retained(original, overlay, path)
    for name, value in overlay.items():
        if not name.startswith("$"):
            _merge_field(result, name, value, field.below.get(name, PLAIN), (*path, name))
        elif name.startswith(DELETE_VALUES):
            _delete_values(result, name, value, (*path, name))
        elif name not in (DIRECTIVE, RETAIN):
            raise MergeError((*path, name), "is not a known directive")
    return result


def _merge_field(result: Json, name: str, value: Any, field: Field, path: Path) -> None:
    below = result.get(name)
    if value is None:
        result.pop(name, None)
    elif isinstance(value, dict):
        base: Json = below if isinstance(below, dict) else {}
        if name not in result and DIRECTIVE in value and value[DIRECTIVE] == "delete":
            return
        result[name] = _map(base, value, field, path)
    elif isinstance(value, list):
        base_list: list[Any] = below if isinstance(below, list) else []
        result[name] = _list(base_list, value, field, path)
    else:
        result[name] = value


def _retained(original: Json, overlay: Json, path: Path) -> Json:
    """A copy of what the overlay keeps."""
    if RETAIN not in overlay:
        return dict(original)
    names = overlay[RETAIN]
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise MergeError((*path, RETAIN), "must be a list of names of fields")
    kept = set(names)
    missing = [name for name in overlay if not name.startswith("$") and name not in kept]
    if missing:
        raise MergeError((*path, RETAIN), f"must name every field beside it; {missing[0]} is missing")
    return {name: value for name, value in original.items() if name in kept}


def _delete_values(result: Json, directive: str, values: Any, path: Path) -> None:
    name = directive.removeprefix(DELETE_VALUES)
    if not isinstance(values, list) or not isinstance(result.get(name, []), list):
        raise MergeError(path, "must be a list of values to remove from a list")
    if name in result:
        gone = {each for each in values if not isinstance(each, dict | list)}
        result[name] = [each for each in result[name] if isinstance(each, dict | list) or each not in gone]


def _list(original: list[Any], overlay: list[Any], field: Field, path: Path) -> list[Any]:
    if field.key is None:
        return [_without_directives(each, (*path, index)) for index, each in enumerate(overlay)]
    if not field.key:
        if any(isinstance(each, dict | list) for each in (*original, *overlay)):
            raise MergeError(path, "must be a list of plain values")
        return [*dict.fromkeys((*original, *overlay))]
    items = _Items(field, path)
    for index, each in enumerate(overlay):
        items.check(each, index)
    return items.merged(original, overlay)


class _Items:
    """Lists whose items are identified by a key."""

    def __init__(self, field: Field, path: Path) -> None:
        self._field = field
        self._path = path

    def check(self, item: Any, index: int) -> None:
        """Raises MergeError for an item that cannot be merged."""
        path, key = (*self._path, index), self._field.key
        if not isinstance(item, dict):
            raise MergeError(path, "must be an object")
        directive = item.get(DIRECTIVE)
        if directive not in (None, "delete", "replace"):
            raise MergeError((*path, DIRECTIVE), "must be delete or replace in an item of a list")
        if directive == "replace" or (key not in item and self._field.optional_key):
            return
        if not isinstance(item.get(key), str | int):
            raise MergeError(path, f"must have {key}, by which items of this list are distinguished")

    def merged(self, original: list[Any], overlay: list[Any]) -> list[Any]:
        written = [(index, each) for index, each in enumerate(overlay) if DIRECTIVE not in each]
        if any(each.get(DIRECTIVE) == "replace" for each in overlay):
            return [_without_directives(each, (*self._path, index)) for index, each in written]
        deleted = {self._identity(each) for each in overlay if each.get(DIRECTIVE) == "delete"}
        kept = [each for each in original if self._identity(each) not in deleted]
        order = [self._identity(each) for each in kept]
        result = self._with(kept, written)
        named: dict[Any, int] = {}
        for place, (_, each) in enumerate(written):
            named.setdefault(self._identity(each), place)
        first = [each for each in result if self._identity(each) in named]
        first.sort(key=lambda each: named[self._identity(each)])
        others = [each for each in result if self._identity(each) not in named]
        return _interleaved(others, first, order, self._identity)

    def _with(self, kept: list[Any], written: Sequence[tuple[int, Json]]) -> list[Any]:
        """`kept`, with each that is written merged into the item of the same key, or behind all."""
        result, below = list(kept), Field(below=self._field.below)
        places: dict[Any, int] = {}
        for place, each in enumerate(kept):
            if isinstance(each, dict):
                places.setdefault(self._identity(each), place)
        for index, item in written:
            place = places.setdefault(self._identity(item), len(result))
            if place == len(result):
                result.append({})
            result[place] = _map(result[place], item, below, (*self._path, index))
        return result

    def _identity(self, item: Any) -> Any:
        """Hashable, whatever stands in a list that an overlay before has replaced as it was written."""
        value = item.get(self._field.key) if self._field.key and isinstance(item, dict) else None
        return ("other", repr(value)) if isinstance(value, dict | list) else value


def _interleaved(
    others: Sequence[Any], written: Sequence[Any], order: Sequence[Any], identity: Callable[[Any], Any]
) -> list[Any]:
    """Two ordered lists as one: one of `others` comes first where it stood before the next written one."""
    result: list[Any] = []
    left, right = deque(others), deque(written)
    places = {value: place for place, value in reversed([*enumerate(order)])}
    while left and right:
        mine, theirs = places.get(identity(left[0])), places.get(identity(right[0]))
        before = mine is not None and theirs is not None and mine < theirs
        result.append((left if before else right).popleft())
    return [*result, *left, *right]


def _plain_map(value: Json, path: Path) -> Json:
    return {
        name: _without_directives(each, (*path, name))
        for name, each in value.items()
        if each is not None and not name.startswith("$")
    }


def _without_directives(value: Any, path: Path) -> Any:
    """What is taken as it is written: without null and directives."""
    if len(path) > DEEPEST:
        raise MergeError(path[:8], f"has more than {DEEPEST} levels")
    if isinstance(value, dict):
        return _plain_map(value, path)
    if isinstance(value, list):
        return [_without_directives(each, (*path, index)) for index, each in enumerate(value)]
    return value
