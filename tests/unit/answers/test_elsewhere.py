"""What other controllers say of their proxies."""

from __future__ import annotations

from controlplane.answers.shared import Answer, AnswerKey, Elsewhere
from controlplane.derive import Change

OTHER = "other"


def told(gateway: str, version: str) -> Change[AnswerKey, Answer]:
    return Change(AnswerKey(OTHER, gateway, "one"), None, Answer(version, {}))


def versions(elsewhere: Elsewhere, gateway: str) -> list[str]:
    return [answer.version for _, answer in elsewhere.of(gateway)]


def test_the_first_batch_of_who_was_lost_is_the_whole_and_concerns_what_it_leaves_out() -> None:
    elsewhere = Elsewhere()
    elsewhere.expect(OTHER)
    assert not elsewhere.complete
    assert elsewhere.hear(OTHER, [told("shop/web", "v1"), told("shop/api", "v1")]) == {"shop/web", "shop/api"}
    assert elsewhere.complete
    elsewhere.expect(OTHER)
    assert elsewhere.hear(OTHER, [told("shop/api", "v2")]) == {"shop/web", "shop/api"}
    assert (versions(elsewhere, "shop/web"), versions(elsewhere, "shop/api")) == ([], ["v2"])
    assert elsewhere.hear(OTHER, [told("shop/web", "v3")]) == {"shop/web"}
