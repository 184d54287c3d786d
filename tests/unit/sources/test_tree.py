"""`controlplane.sources.tree` through its front door, with a toy language: one line `name value` makes one object.

`bad NAME` is a piece in error that names its object, `part NAME VALUE` one of which a part stands until the object had
a good state, `!` one that names nothing.
"""

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controlplane.facts import Fact, Invalid
from controlplane.sources import file_state, tree
from gatewright.api.schema.metadata import ObjectKey
from gatewright.api.text.problem import Problem


def key(name: str) -> ObjectKey:
    return ObjectKey("Toy", "default", name)


class Toy:
    """Decodes the toy language and counts how often it was asked."""

    def __init__(self) -> None:
        self.decoded: list[str] = []

    def __call__(self, text: str) -> file_state.Decoded:
        self.decoded.append(text)
        lines = [(n, line.split()) for n, line in enumerate(text.splitlines(), 1) if line.strip() and line[:3] != "---"]
        objects = [
            file_state.Object(key(words[0]), " ".join(words), words[1])
            for _, words in lines
            if words[0] not in ("!", "bad", "part")
        ]
        named = [(n, words[1]) for n, words in lines if words[0] in ("bad", "part")]
        remains = [
            file_state.Object(key(words[1]), " ".join(words[1:]), words[2]) for _, words in lines if words[0] == "part"
        ]
        broken = [n for n, words in lines if words[0] == "!"]
        problems = [Problem("", n, str(key(name)), "", "is bad") for n, name in named]
        problems += [Problem("", n, "", "", "is broken") for n in broken]
        keys = tuple(key(name) for _, name in named)
        return file_state.Decoded(tuple(objects), tuple(problems), keys, bool(broken), tuple(remains))


def make() -> tuple[tree.Tree, Toy]:
    toy = Toy()
    return tree.Tree(toy, lambda model, generation: f"{model} g{generation}"), toy


def stage(state: tree.Tree, file: str, text: str) -> file_state.Staged:
    *rest, staged = state.stage(file, text)
    assert staged is not None
    assert rest == [None] * len(rest)
    return staged


def put(state: tree.Tree, file: str, text: str) -> dict[str, str | None]:
    return told(state.commit(stage(state, file, text)))


def told(changes: Iterable[Fact]) -> dict[str, str | None]:
    """An invalid object as `! ` and what acts for it."""
    return {change.key.name: shown(change.model) for change in changes}


def shown(model: Any) -> str | None:
    return f"! {model.last_good or model.rest}" if isinstance(model, Invalid) else model


def test_a_new_file_tells_its_objects() -> None:
    state, _ = make()
    assert put(state, "a.yaml", "one 1\n---\ntwo 2\n") == {"one": "one 1 g1", "two": "two 2 g1"}


def test_cut_keeps_every_character_and_cuts_only_at_document_starts() -> None:
    text = "a: 1\n---\nb: |\n  ---\n  text\n--- # comment\nc: 1\n----\n---x\n---"
    assert file_state.cut(text) == ("a: 1\n", "---\nb: |\n  ---\n  text\n", "--- # comment\nc: 1\n----\n---x\n", "---")
    assert "".join(file_state.cut(text)) == text


def test_one_edit_decodes_one_document() -> None:
    state, toy = make()
    pieces = [f"name{i} {i}\n" for i in range(200)]
    put(state, "a.yaml", "---\n".join(pieces))
    toy.decoded.clear()
    pieces[77] = "name77 new\n"
    assert put(state, "a.yaml", "---\n".join(pieces)) == {"name77": "name77 new g2"}
    assert len(toy.decoded) == 1


def test_pieces_before_and_after_an_edit_are_taken_over() -> None:
    state, toy = make()
    pieces = [f"name{i} {i}\n" for i in range(6)]
    put(state, "a.yaml", "---\n".join(pieces))
    toy.decoded.clear()
    staged = stage(state, "a.yaml", "---\n".join([*pieces[:2], "other 2\n", *pieces[3:]]))
    assert (staged.unchanged_head, staged.unchanged_tail, toy.decoded) == (2, 3, ["---\nother 2\n"])
    same = stage(state, "a.yaml", "---\n".join(pieces))
    assert (same.unchanged_head, same.unchanged_tail) == (6, 0)
    shorter = stage(state, "a.yaml", "---\n".join([*pieces[:2], *pieces[4:]]))
    assert (shorter.unchanged_head, shorter.unchanged_tail) == (2, 2)


def test_errors_that_were_there_before_are_no_loss() -> None:
    state, _ = make()
    put(state, "a.yaml", "bad x\n---\none 1\n---\ntwo 2\n")
    assert not stage(state, "a.yaml", "bad y\n---\none 2\n---\ntwo 2\n").loses
    assert not stage(state, "a.yaml", "one 1\n---\ntwo 2\n").loses
    assert stage(state, "a.yaml", "bad x\n---\none 1\n---\nthree 2\n").loses
    assert stage(state, "a.yaml", "bad x\n---\none 1\n").loses
    put(state, "b.yaml", "three 3\n---\nfour 4\n")
    assert stage(state, "b.yaml", "three 3\n---\nbad four\n").loses
    assert stage(state, "b.yaml", "three 3\n---\nfour 4\n---\n!\n").loses


def test_a_file_that_can_be_read_again_or_is_gone_is_no_problem_any_more() -> None:
    state, _ = make()
    problem = Problem("a.yaml", 0, "", "", "cannot be read: permission denied")
    put(state, "a.yaml", "one 1\n")
    state.unreadable(problem)
    assert state.problems() == [problem]
    put(state, "a.yaml", "one 1\n")
    assert state.problems() == []
    state.unreadable(problem)
    state.remove("a.yaml")
    assert state.problems() == []


def test_problems_come_by_file_and_line_and_go_with_what_was_wrong() -> None:
    state, _ = make()
    put(state, "b.yaml", "one 1\n---\nbad two\n---\nx 1\nbad three\n")
    put(state, "a.yaml", "bad four\n")
    found = [(problem.file, problem.line, problem.object) for problem in state.problems()]
    assert found == [
        ("a.yaml", 1, "Toy default/four"),
        ("b.yaml", 3, "Toy default/two"),
        ("b.yaml", 6, "Toy default/three"),
    ]
    put(state, "b.yaml", "one 1\n---\ntwo 2\n---\nx 1\nbad three\n")
    assert [(problem.file, problem.line) for problem in state.problems()] == [("a.yaml", 1), ("b.yaml", 6)]
    state.remove("a.yaml")
    put(state, "b.yaml", "one 1\n")
    assert state.problems() == []


def test_an_inserted_and_a_deleted_document_leave_the_others_alone() -> None:
    state, toy = make()
    put(state, "a.yaml", "one 1\n---\ntwo 2\n---\nthree 3\n")
    toy.decoded.clear()
    assert put(state, "a.yaml", "one 1\n---\nnew 0\n---\ntwo 2\n---\nthree 3\n") == {"new": "new 0 g1"}
    assert toy.decoded == ["---\nnew 0\n"]
    assert put(state, "a.yaml", "one 1\n---\nnew 0\n---\nthree 3\n") == {"two": None}


def test_the_same_content_in_another_form_tells_nothing_and_keeps_the_generation() -> None:
    state, _ = make()
    put(state, "a.yaml", "one 1\n")
    assert put(state, "a.yaml", "one    1   \n") == {}
    assert put(state, "a.yaml", "one 2\n") == {"one": "one 2 g2"}
    assert put(state, "a.yaml", "one 1\n") == {"one": "one 1 g3"}


def test_a_removed_file_takes_its_objects_along() -> None:
    state, _ = make()
    put(state, "a.yaml", "one 1\n---\ntwo 2\n")
    assert told(state.remove("a.yaml")) == {"one": None, "two": None}
    assert state.files == frozenset()


def test_an_object_in_error_keeps_its_last_good_content_and_the_rest_applies() -> None:
    state, _ = make()
    put(state, "a.yaml", "one 1\n---\ntwo 2\n---\nthree 3\n")
    assert put(state, "a.yaml", "one 1\n---\nbad two\n---\nthree 33\n") == {
        "two": "! two 2 g1",
        "three": "three 33 g2",
    }
    assert [str(problem) for problem in state.problems()] == ["a.yaml:3: Toy default/two: is bad"]
    assert put(state, "a.yaml", "one 1\n---\ntwo 22\n---\nthree 33\n") == {"two": "two 22 g3"}
    assert state.problems() == []


def test_a_deleted_neighbour_of_an_object_in_error_is_gone() -> None:
    state, _ = make()
    put(state, "a.yaml", "one 1\n---\ntwo 2\n")
    assert put(state, "a.yaml", "bad two\n") == {"one": None, "two": "! two 2 g1"}


def test_a_broken_piece_keeps_everything_that_it_may_have_been_about() -> None:
    state, _ = make()
    put(state, "a.yaml", "one 1\n---\ntwo 2\n")
    assert put(state, "a.yaml", "one 11\n---\n!\n") == {"one": "one 11 g2"}
    assert [str(problem) for problem in state.problems()] == ["a.yaml:3: is broken"]
    # Twice in a row: what is kept is kept on.
    assert put(state, "a.yaml", "one 11\n---\n! !\n") == {}
    assert put(state, "a.yaml", "one 11\n") == {"two": None}


def test_a_part_stands_until_there_is_a_good_state_whatever_breaks_meanwhile() -> None:
    """Such a part is what a security policy in error leaves: without it what it covers would be open."""
    state, _ = make()
    assert put(state, "a.yaml", "part one 1\n") == {"one": "! one 1 g1"}
    assert put(state, "a.yaml", "!\n") == {}
    assert put(state, "a.yaml", "bad one\n") == {}
    assert put(state, "a.yaml", "! !\n---\npart one 2\n") == {"one": "! one 2 g2"}
    assert put(state, "a.yaml", "one 3\n") == {"one": "one 3 g3"}
    assert put(state, "a.yaml", "part one 4\n") == {"one": "! one 3 g3"}
    assert put(state, "a.yaml", "two 2\n") == {"one": None, "two": "two 2 g1"}


def test_an_object_that_is_there_twice_is_kept_as_it_counted() -> None:
    state, _ = make()
    put(state, "a.yaml", "one 1\n---\none 2\n")
    assert put(state, "a.yaml", "bad one\n") == {"one": "! one 1 g1"}


def test_at_a_cold_start_a_bad_piece_hides_no_good_one() -> None:
    state, _ = make()
    assert put(state, "a.yaml", "!\n---\none 1\n---\nbad two\n") == {"one": "one 1 g1", "two": "! None"}


def test_staging_says_when_something_would_be_lost() -> None:
    state, _ = make()
    put(state, "a.yaml", "one 1\n---\ntwo 2\n")
    cases = {
        "one 1\n---\ntwo 3\n": False,  # an edit
        "one 1\n---\ntwo 2\n---\nthree 3\n": False,  # an addition
        "one 1\n": True,  # half of it
        "": True,  # truncated
        "one 1\n---\n!\n": True,  # cannot be read yet
        "two 2\n---\none 1\n": False,  # another order
    }
    assert {text: stage(state, "a.yaml", text).loses for text in cases} == cases


def test_an_error_that_was_there_before_is_no_reason_to_wait() -> None:
    state, _ = make()
    put(state, "a.yaml", "!\n---\ntwo 2\n")
    assert not stage(state, "a.yaml", "! still\n---\ntwo 2\n").loses
    assert stage(state, "a.yaml", "one 1\n---\nbad two\n").loses


def test_the_first_file_wins_and_the_others_are_told_about_it() -> None:
    state, _ = make()
    assert put(state, "b.yaml", "one b\n") == {"one": "one b g1"}
    assert put(state, "c.yaml", "one c\n") == {}
    assert put(state, "a.yaml", "one a\n") == {"one": "one a g2"}
    assert [(problem.file, problem.object) for problem in state.problems()] == [
        ("b.yaml", "Toy default/one"),
        ("c.yaml", "Toy default/one"),
    ]
    assert "a.yaml and again in b.yaml" in str(state.problems()[0])
    assert told(state.remove("a.yaml")) == {"one": "one b g3"}
    assert told(state.remove("b.yaml")) == {"one": "one c g4"}
    assert state.problems() == []


def test_an_object_twice_in_one_file_is_the_first_of_them() -> None:
    state, _ = make()
    assert put(state, "a.yaml", "one 1\n---\none 2\n") == {"one": "one 1 g1"}
    assert [problem.file for problem in state.problems()] == ["a.yaml"]
    # An edit of the first alone must not make the second win.
    assert put(state, "a.yaml", "one 3\n---\none 2\n") == {"one": "one 3 g2"}
    assert put(state, "a.yaml", "one 3\n") == {}
    assert state.problems() == []


def test_an_object_that_moves_to_another_file_changes_nothing() -> None:
    state, _ = make()
    put(state, "a.yaml", "one 1\n")
    assert put(state, "b.yaml", "one 1\n") == {}
    assert told(state.remove("a.yaml")) == {}


def test_an_unreadable_file_keeps_its_objects() -> None:
    state, _ = make()
    put(state, "a.yaml", "one 1\n")
    state.unreadable(Problem("a.yaml", 0, "", "", "cannot be read: permission denied"))
    assert [str(problem) for problem in state.problems()] == ["a.yaml: cannot be read: permission denied"]
    assert put(state, "a.yaml", "one 1\n") == {}
    assert state.problems() == []


TEXTS = st.lists(st.tuples(st.sampled_from(["one", "two", "three", "four"]), st.sampled_from("123")), max_size=5).map(
    lambda lines: "---\n".join(f"{name} {value}\n" for name, value in lines)
)
STEPS = st.lists(st.tuples(st.sampled_from(["a.yaml", "b.yaml", "c.yaml"]), st.none() | TEXTS), max_size=12)


@given(STEPS)
def test_the_way_does_not_matter(steps: list[tuple[str, str | None]]) -> None:
    """After any edits the objects, their order of precedence and the problems are those of reading everything anew."""
    state, _ = make()
    known: dict[str, str] = {}
    texts: dict[str, str] = {}
    for file, text in steps:
        if text is None:
            texts.pop(file, None)
            changes = told(state.remove(file))
        else:
            texts[file] = text
            changes = put(state, file, text)
        for name, model in changes.items():
            if model is None:
                del known[name]
            else:
                assert known.get(name, "").partition(" g")[0] != model.partition(" g")[0]
                known[name] = model
    fresh, _ = make()
    anew: dict[str, str | None] = {}
    for file, text in texts.items():
        anew |= put(fresh, file, text)
    assert {name: model.partition(" g")[0] for name, model in known.items()} == {
        name: str(model).partition(" g")[0] for name, model in anew.items()
    }
    assert state.problems() == fresh.problems()


def test_where_an_object_comes_from() -> None:
    state, _ = make()
    for file in ("b.yaml", "a.yaml", "c.yaml"):
        put(state, file, "one 1\n")
    assert state.file_of(key("one")) == "a.yaml"
    assert state.file_of(key("two")) is None
    put(state, "a.yaml", "")
    assert state.file_of(key("one")) == "b.yaml"
    assert state.files == {"a.yaml", "b.yaml", "c.yaml"}


def test_problems_count_lines_from_the_beginning_of_the_file_and_are_sorted() -> None:
    state, _ = make()
    put(state, "b.yaml", "bad two\n---\nbad one\n")
    put(state, "a.yaml", "one 1\n\n---\n\nbad x\n! \n")
    assert [str(problem) for problem in state.problems()] == [
        "a.yaml:5: Toy default/x: is bad",
        "a.yaml:6: is broken",
        "b.yaml:1: Toy default/two: is bad",
        "b.yaml:3: Toy default/one: is bad",
    ]
    put(state, "a.yaml", "one 1\n\n---\n\nbad x\n")
    assert [problem.line for problem in state.problems()] == [5, 1, 3]
    state.remove("b.yaml")
    assert [problem.line for problem in state.problems()] == [5]
    put(state, "a.yaml", "one 1\n")
    assert state.problems() == []


def test_duplicates_within_and_between_files_are_each_told_once() -> None:
    state, _ = make()
    put(state, "a.yaml", "one 1\n---\none 2\n---\none 3\n")
    put(state, "b.yaml", "one 1\n---\none 2\n")
    assert [problem.file for problem in state.problems()] == ["a.yaml", "b.yaml"]
    assert str(state.problems()[1]).endswith(
        "is defined in a.yaml and again in b.yaml; the first is used: delete one of them"
    )
    put(state, "a.yaml", "one 1\n")
    assert [problem.file for problem in state.problems()] == ["b.yaml"]


def test_each_piece_and_object_is_a_moment_for_others() -> None:
    state, _ = make()
    text = "one 1\n---\ntwo 2\n---\nthree 3\n"
    *moments, staged = state.stage("a.yaml", text)
    assert staged is not None and len(moments) == 6, "each is cut, and each is decoded"
    *moments, changes = state.committing(staged)
    assert changes is not None and len(changes) == 3 and len(moments) == 6
    *moments, changes = state.removing("a.yaml")
    assert changes is not None and len(changes) == 3 and len(moments) == 6
    assert state.remove("absent.yaml") == []
