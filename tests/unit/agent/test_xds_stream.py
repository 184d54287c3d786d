"""The proxy's side of the delta xDS conversation (scenarios 1-12 of our list), as literal conversations."""

from __future__ import annotations

import json

import pytest

from dataplane.agent import xds_stream
from dataplane.agent.xds_stream import MAX_REFUSALS, QUESTION, STATE_KEY, Request, Response, State, XdsStream
from dataplane.link.messages import ENDPOINT, RESOURCE, Record
from gatewright import revisions


def stream() -> XdsStream:
    made = XdsStream("default/web", "proxy-1", "0.1.0")
    made.open()
    return made


def response(
    *resources: tuple[str, str, bytes], nonce: str, removed: tuple[str, ...] = (), end: str = "", kind: str = RESOURCE
) -> Response:
    """Resources as (name, version, value); `end` is the version of the state that ends here."""
    made = Response(type_url=kind, nonce=nonce, removed_resources=removed, system_version_info=end)
    for name, version, value in resources:
        resource = made.resources.add(name=name, version=version)
        resource.resource.type_url = kind
        resource.resource.value = value
    return made


def refusals(request: Request) -> dict[str, str]:
    assert request.HasField("error_detail")
    assert request.error_detail.code == 3
    return {row["key"]: row["error"] for row in json.loads(request.error_detail.message)}


def versions(conversation: XdsStream) -> dict[str, dict[str, str]]:
    """What it tells a control plane that holds another state than the one that it claims, if it claims one."""
    requests = conversation.open()
    if STATE_KEY in requests[0].node.metadata:
        assert not any(request.initial_resource_versions for request in requests)
        answers = [conversation.receive(Response(type_url=kind, nonce=QUESTION)) for kind in (ENDPOINT, RESOURCE)]
        requests = [answer for answer in answers if isinstance(answer, Request)]
        assert [request.response_nonce for request in requests] == [QUESTION, QUESTION]
    return {request.type_url: dict(request.initial_resource_versions) for request in requests}


def claim(conversation: XdsStream) -> str:
    """What it claims when it opens a stream; empty when it tells its versions instead."""
    first, *others = conversation.open()
    assert not any(other.HasField("node") for other in others)
    return str(first.node.metadata[STATE_KEY]) if STATE_KEY in first.node.metadata else ""


def test_a_new_stream_asks_for_everything_of_both_types_and_says_who_it_is_once() -> None:
    first, second = XdsStream("default/web", "proxy-1", "0.1.0").open()
    assert [first.type_url, second.type_url] == [ENDPOINT, RESOURCE]
    assert [list(r.resource_names_subscribe) for r in (first, second)] == [["*"], ["*"]]
    assert (first.node.id, first.node.cluster) == ("default/web/proxy-1", "default/web")
    assert (first.node.user_agent_name, first.node.user_agent_version) == ("gatewright", "0.1.0")
    assert first.node.metadata["wire_revision"] == revisions.NEWEST
    assert not second.HasField("node")
    assert not first.initial_resource_versions and not first.response_nonce
    assert STATE_KEY not in first.node.metadata


def test_a_state_is_given_as_a_whole_at_its_end_and_answered_after_it_was_applied() -> None:
    talk = stream()
    assert talk.receive(response(("e1", "1", b"E"), nonce="n1", kind=ENDPOINT)) is None
    assert talk.receive(response(("r1", "1", b"A"), nonce="n2")) is None
    state = talk.receive(response(("r2", "1", b"B"), nonce="n3", end="v1"))
    assert state == State(
        "v1", (Record(ENDPOINT, "e1", b"E"), Record(RESOURCE, "r1", b"A"), Record(RESOURCE, "r2", b"B"))
    )
    answers = talk.answer({})
    assert [(a.type_url, a.response_nonce) for a in answers] == [(ENDPOINT, "n1"), (RESOURCE, "n2"), (RESOURCE, "n3")]
    assert not any(a.HasField("error_detail") for a in answers)
    assert not any(a.resource_names_subscribe or a.initial_resource_versions for a in answers)


def test_an_empty_state_is_a_state() -> None:
    talk = stream()
    assert talk.receive(response(nonce="n1", end="v0")) == State("v0", ())
    assert [a.response_nonce for a in talk.answer({})] == ["n1"]


def test_good_resources_of_a_refused_state_count_and_the_bad_ones_keep_their_old_version() -> None:
    talk = stream()
    talk.receive(response(("r1", "1", b""), ("r2", "1", b""), nonce="n1", end="v1"))
    talk.answer({})
    talk.receive(response(("r1", "2", b""), ("r2", "2", b""), nonce="n2", end="v2"))
    (nack,) = talk.answer({"r2": "bad regex"})
    assert nack.response_nonce == "n2"
    assert refusals(nack) == {"r2": "bad regex"}
    assert versions(talk)[RESOURCE] == {"r1": "2", "r2": ""}


def test_a_nack_of_the_very_first_state_leaves_a_name_without_a_version() -> None:
    talk = stream()
    talk.receive(response(("r1", "1", b""), nonce="n1", end="v1"))
    talk.answer({"r1": "unknown kind"})
    assert versions(talk) == {ENDPOINT: {}, RESOURCE: {"r1": ""}}


def test_what_is_still_refused_is_named_in_the_answer_to_every_state_until_it_is_mended() -> None:
    talk = stream()
    talk.receive(response(("r1", "1", b""), nonce="n1", end="v1"))
    assert refusals(talk.answer({"r1": "bad"})[0]) == {"r1": "bad"}
    talk.receive(response(("r2", "1", b""), nonce="n2", end="v2"))
    assert refusals(talk.answer({"r1": "bad"})[0]) == {"r1": "bad"}
    talk.receive(response(("r1", "2", b""), nonce="n3", end="v3"))
    assert not talk.answer({})[0].HasField("error_detail")
    assert versions(talk)[RESOURCE] == {"r1": "2", "r2": "1"}


def test_only_the_last_answer_names_what_other_responses_carried() -> None:
    talk = stream()
    talk.receive(response(("r1", "1", b""), nonce="n1"))
    talk.receive(response(("r2", "1", b""), nonce="n2"))
    talk.receive(response(("r3", "1", b""), nonce="n3", end="v1"))
    one, two, three = talk.answer({"r1": "bad"})
    assert refusals(one) == {"r1": "bad"}
    assert not two.HasField("error_detail")
    assert refusals(three) == {"r1": "bad"}


def test_removals_are_records_and_their_versions_are_forgotten() -> None:
    talk = stream()
    talk.receive(response(("r1", "1", b"A"), nonce="n1", end="v1"))
    talk.answer({})
    state = talk.receive(response(nonce="n2", removed=("r1", "never there"), end="v2"))
    assert state == State("v2", (Record(RESOURCE, "r1", None), Record(RESOURCE, "never there", None)))
    talk.answer({})
    assert versions(talk)[RESOURCE] == {}


def test_the_last_word_on_a_resource_counts_within_a_state() -> None:
    talk = stream()
    talk.receive(response(("r1", "1", b"A"), ("r2", "1", b"B"), nonce="n1"))
    state = talk.receive(response(("r1", "2", b"C"), nonce="n2", removed=("r2",), end="v1"))
    assert state == State("v1", (Record(RESOURCE, "r1", b"C"), Record(RESOURCE, "r2", None)))
    talk.answer({})
    assert versions(talk)[RESOURCE] == {"r1": "2"}


def test_records_come_in_the_order_of_their_last_words() -> None:
    talk = stream()
    talk.receive(response(("r1", "1", b"A"), ("r2", "1", b"B"), ("r3", "1", b"C"), nonce="n1"))
    talk.receive(response(("r2", "2", b"D"), nonce="n2", removed=("r1",)))
    state = talk.receive(response(nonce="n3", end="v1"))
    assert isinstance(state, State)
    assert [record.name for record in state.records] == ["r3", "r2", "r1"]


@pytest.mark.parametrize("name", ["x", "x" * 4096])
def test_the_shortest_and_the_longest_name(name: str) -> None:
    talk = stream()
    state = State("v1", (Record(RESOURCE, name, b"A"),))
    assert talk.receive(response((name, "1", b"A"), nonce="n1", end="v1")) == state
    assert not talk.answer({})[0].HasField("error_detail")
    assert talk.receive(response(nonce="n2", removed=(name,), end="v2")) == State("v2", (Record(RESOURCE, name, None),))


def test_a_stream_that_breaks_forgets_its_half_state_and_replays_the_versions_it_holds() -> None:
    talk = stream()
    talk.receive(response(("e1", "7", b""), nonce="n1", kind=ENDPOINT))
    talk.receive(response(("r1", "1", b""), nonce="n2", end="v1"))
    talk.answer({})
    talk.receive(response(("r2", "1", b"half"), nonce="n3"))
    assert versions(talk) == {ENDPOINT: {"e1": "7"}, RESOURCE: {"r1": "1"}}
    state = talk.receive(response(("r3", "1", b""), nonce="n4", end="v2"))
    assert state == State("v2", (Record(RESOURCE, "r3", b""),))
    assert [a.response_nonce for a in talk.answer({})] == ["n4"]


def test_a_state_that_was_applied_while_the_stream_broke_is_held_after_all() -> None:
    talk = stream()
    talk.receive(response(("r1", "1", b""), nonce="n1", end="v1"))
    talk.answer({})  # cannot be sent any more
    assert versions(talk)[RESOURCE] == {"r1": "1"}


def test_a_name_sent_twice_in_one_response_is_refused_and_not_applied() -> None:
    talk = stream()
    state = talk.receive(response(("r1", "1", b"A"), ("r1", "2", b"B"), ("r2", "1", b""), nonce="n1", end="v1"))
    assert state == State("v1", (Record(RESOURCE, "r2", b""),))
    assert "twice" in refusals(talk.answer({})[0])["r1"]
    assert versions(talk)[RESOURCE] == {"r1": "", "r2": "1"}


def test_a_resource_that_was_wrong_and_came_again_in_the_same_state_counts() -> None:
    conversation = stream()
    assert conversation.receive(response(("a", "1", b"x"), ("a", "2", b"y"), nonce="n1")) is None
    state = conversation.receive(response(("a", "3", b"z"), nonce="n2", end="v1"))
    assert isinstance(state, State) and state.records == (Record(RESOURCE, "a", b"z"),)
    assert not any(request.HasField("error_detail") for request in conversation.answer({}))
    assert versions(conversation)[RESOURCE] == {"a": "3"}


def test_a_report_asks_for_nothing_and_is_of_a_type_that_is_subscribed_to() -> None:
    conversation = stream()
    (first, *_) = conversation.open()
    request = conversation.reporting('[{"endpoint": "10.0.0.1:80"}]')
    assert request.type_url == first.type_url
    assert not request.response_nonce and not request.resource_names_subscribe
    assert len(request.node.metadata.fields) == 1
    assert "10.0.0.1:80" in str(request.node.metadata)


def test_a_payload_of_another_type_is_refused() -> None:
    talk = stream()
    wrong = response(("r1", "1", b"A"), nonce="n1", end="v1")
    wrong.resources[0].resource.type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
    assert talk.receive(wrong) == State("v1", ())
    assert "is of type" in refusals(talk.answer({})[0])["r1"]
    # It is named until it is mended, as what workers refuse.
    talk.receive(response(("r2", "1", b""), nonce="n2", end="v2"))
    assert "r1" in refusals(talk.answer({})[0])
    talk.receive(response(("r1", "2", b""), nonce="n3", end="v3"))
    assert not talk.answer({})[0].HasField("error_detail")


@pytest.mark.parametrize("name", ["", "x" * 4097])
def test_impossible_names_are_refused(name: str) -> None:
    talk = stream()
    assert talk.receive(response((name, "1", b"A"), nonce="n1", end="v1")) == State("v1", ())
    assert "characters" in refusals(talk.answer({})[0])[name]


def test_a_type_that_nobody_asked_for_is_refused_at_once() -> None:
    talk = stream()
    answer = talk.receive(response(("c", "1", b""), nonce="n9", end="v1", kind="type.googleapis.com/envoy.Cluster"))
    assert isinstance(answer, Request)
    assert (answer.type_url, answer.response_nonce) == ("type.googleapis.com/envoy.Cluster", "n9")
    assert "unknown type" in refusals(answer)[""]
    assert talk.receive(response(nonce="n1", end="v1")) == State("v1", ())


def test_a_nack_stays_small_however_much_is_wrong() -> None:
    talk = stream()
    talk.receive(response(nonce="n1", end="v1"))
    (nack,) = talk.answer({f"route/{i}": "bad" for i in range(MAX_REFUSALS + 7)})
    rows = refusals(nack)
    assert len(rows) == MAX_REFUSALS + 1
    assert rows[""] == "and 7 more"


# What is claimed after a reconnect


def test_the_version_of_the_last_state_is_claimed_instead_of_those_of_all_resources() -> None:
    talk = stream()
    talk.receive(response(("r1", "1", b""), nonce="n1", end="v1"))
    assert claim(talk) == ""  # received, but not applied
    talk.receive(response(("r1", "1", b""), nonce="n1", end="v1"))
    talk.answer({})
    assert (claim(talk), claim(talk)) == ("v1", "v1")
    talk.receive(response(nonce="n2", end="v1"))
    talk.answer({})
    talk.receive(response(("r2", "1", b""), nonce="n3", end="v2"))
    talk.answer({})
    assert claim(talk) == "v2"


def test_nothing_is_claimed_while_something_is_refused() -> None:
    talk = stream()
    talk.receive(response(("r1", "1", b""), ("r2", "1", b""), nonce="n1", end="v1"))
    talk.answer({"r2": "bad"})
    assert claim(talk) == ""
    talk.receive(response(("r2", "2", b""), nonce="n2", end="v2"))
    talk.answer({})
    assert claim(talk) == "v2"
    talk.receive(response(nonce="n3", end="v2"))
    talk.answer({"r1": "its port is in use by now"})
    assert claim(talk) == ""


def test_nothing_is_claimed_while_a_resource_has_no_version() -> None:
    """A refusal that ended by itself: the control plane has to send that resource once more."""
    talk = stream()
    talk.receive(response(("r1", "1", b""), nonce="n1", end="v1"))
    talk.answer({"r1": "no backend"})
    talk.receive(response(("r2", "1", b""), nonce="n2", end="v2"))
    talk.answer({})
    assert claim(talk) == ""


def test_nothing_is_claimed_after_a_resource_that_could_not_be_taken() -> None:
    talk = stream()
    talk.receive(response(("", "1", b""), nonce="n1", end="v1"))
    talk.answer({})
    assert claim(talk) == ""


def test_a_claimed_state_that_is_confirmed_changes_nothing() -> None:
    talk = stream()
    talk.receive(response(("r1", "1", b""), nonce="n1", end="v1"))
    talk.answer({})
    assert claim(talk) == "v1"
    assert talk.receive(response(nonce="n1", end="v1")) == State("v1", ())
    assert [answer.response_nonce for answer in talk.answer({})] == ["n1"]
    assert talk.receive(response(nonce="n2", removed=("r1",), end="v2")) == State("v2", (Record(RESOURCE, "r1", None),))


def test_versions_are_told_when_they_are_asked_for_and_only_differences_follow() -> None:
    talk = stream()
    talk.receive(response(("e1", "7", b""), nonce="n1", kind=ENDPOINT))
    talk.receive(response(("r1", "1", b""), nonce="n2", end="v1"))
    talk.answer({})
    assert versions(talk) == {ENDPOINT: {"e1": "7"}, RESOURCE: {"r1": "1"}}
    assert talk.receive(response(("r2", "1", b""), nonce="n3", end="v2")) == State("v2", (Record(RESOURCE, "r2", b""),))
    (answer,) = talk.answer({})
    assert (answer.response_nonce, answer.HasField("error_detail")) == ("n3", False)


def test_a_first_state_that_nobody_asked_about_is_the_whole() -> None:
    """A control plane that does not know of claims; also when its state has the claimed version."""
    for end in ("v1", "v2"):
        talk = stream()
        talk.receive(response(("e1", "1", b""), nonce="n1", kind=ENDPOINT))
        talk.receive(response(("r1", "1", b""), ("r2", "1", b""), nonce="n2", end="v1"))
        talk.answer({})
        assert claim(talk) == "v1"
        talk.receive(response(("e2", "1", b"E"), nonce="n1", kind=ENDPOINT))
        state = talk.receive(response(("r1", "1", b"A"), nonce="n2", end=end))
        assert state == State(
            end,
            (
                Record(ENDPOINT, "e2", b"E"),
                Record(RESOURCE, "r1", b"A"),
                Record(ENDPOINT, "e1", None),
                Record(RESOURCE, "r2", None),
            ),
        )
        talk.answer({})
        assert talk.receive(response(nonce="n3", end="v3")) == State("v3", ())  # the first one only
        talk.answer({})
        assert versions(talk) == {ENDPOINT: {"e2": "1"}, RESOURCE: {"r1": "1"}}


def test_a_nonce_alone_is_no_question() -> None:
    talk = stream()
    assert talk.receive(response(("r1", "1", b"A"), nonce=QUESTION, end="v1")) == State(
        "v1", (Record(RESOURCE, "r1", b"A"),)
    )
    assert [answer.response_nonce for answer in talk.answer({})] == [QUESTION]


def test_a_removal_that_fits_no_frame_reaches_no_worker() -> None:
    talk = stream()
    name = "x" * 70_000
    talk.receive(response((name, "1", b"A"), nonce="n1", end="v1"))
    assert json.loads(talk.answer({})[0].error_detail.message)[0]["key"] == name
    assert talk.receive(response(nonce="n2", removed=(name, ""), end="v2")) == State("v2", ())
    assert not talk.answer({})[0].HasField("error_detail")


def test_a_state_is_claimed_by_its_whole_version_and_known_to_others_by_what_may_be_seen() -> None:
    talk, seen, secrets = stream(), "a" * 32, "b" * 32
    assert talk.receive(response(nonce="n1", end=seen + secrets)) == State(seen, ())
    talk.answer({})
    assert talk.open()[0].node.metadata[STATE_KEY] == seen + secrets


def test_who_holds_more_than_a_request_can_name_says_nothing_and_takes_the_first_state_as_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A control plane takes messages of 4 MiB."""
    monkeypatch.setattr(xds_stream, "MAX_VERSIONS", 25)
    for refused in ({}, {"r2": "no"}):  # asked for the versions after a claim, and without a claim
        talk = stream()
        talk.receive(response(("r1", "1", b""), ("r2", "1", b""), ("r3", "1", b""), nonce="n1", end="v1"))
        talk.answer(refused)
        assert versions(talk) == {ENDPOINT: {}, RESOURCE: {}}
        state = talk.receive(response(("r1", "1", b"A"), nonce="n2", end="v2"))
        assert state == State(
            "v2", (Record(RESOURCE, "r1", b"A"), Record(RESOURCE, "r2", None), Record(RESOURCE, "r3", None))
        )
        talk.answer({})
        assert versions(talk) == {ENDPOINT: {}, RESOURCE: {"r1": "1"}}
        assert talk.receive(response(("r2", "1", b"B"), nonce="n3", end="v3")) == State(
            "v3", (Record(RESOURCE, "r2", b"B"),)
        )
