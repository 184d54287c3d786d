"""Who may have which Gateway: by token, by certificate, by both; fail closed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from controlplane.xds.node import Peer
from controlplane.xds.trust import admission
from controlplane.xds.trust.admission import Admission, Complaints, Right
from controlplane.xds.trust.tokens import Gateways, Tokens

WEB, ALL = "token-of-the-web-gateway", "token-of-all-gateways"
SPIFFE = "spiffe://example.com/ns/shop/gateway/web"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "tokens").write_text(f"{WEB} shop/web\n{ALL}\n")
    return tmp_path / "tokens"


def peer(*headers: str | bytes, uris: tuple[str, ...] = ()) -> Peer:
    return Peer("ipv4:10.0.0.1:99", False, tuple(("authorization", value) for value in headers), uris)


def allowed(found: Right | str, *gateways: str) -> list[str]:
    assert isinstance(found, Right), found
    return [gateway for gateway in gateways if found.allows(gateway)]


def test_tokens(file: Path) -> None:
    rule = Admission(Tokens(file))
    assert allowed(rule.admit(peer(f"Bearer {WEB}")), "shop/web", "shop/api") == ["shop/web"]
    assert allowed(rule.admit(peer(f"bearer {ALL}")), "shop/web", "shop/api") == ["shop/web", "shop/api"]


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ((), admission.NO_TOKEN),
        (("",), admission.NO_TOKEN),
        ((WEB,), admission.NO_TOKEN),
        (("Basic " + WEB,), admission.NO_TOKEN),
        ((b"Bearer " + WEB.encode(),), admission.NO_TOKEN),
        (("Bearer ",), admission.WRONG_TOKEN),
        (("Bearer wrong",), admission.WRONG_TOKEN),
        ((f"Bearer  {WEB}",), admission.WRONG_TOKEN),
        ((f"Bearer {WEB}", "Bearer wrong"), admission.SEVERAL),
        ((f"Bearer {WEB}", f"Bearer {WEB}"), admission.SEVERAL),
    ],
)
def test_who_is_refused(headers: tuple[str | bytes, ...], reason: str, file: Path) -> None:
    found = Admission(Tokens(file)).admit(peer(*headers))
    assert found == reason and WEB not in reason


@pytest.mark.parametrize(
    ("uris", "gateways"),
    [
        ((), None),
        (("spiffe://example.com/ns/shop/sa/web",), None),
        ((SPIFFE,), {"shop/web"}),
        ((SPIFFE, "spiffe://example.com/ns/shop/gateway/api"), {"shop/web", "shop/api"}),
        ((SPIFFE + "/more",), set()),
        (("spiffe://example.com/gateway/shop/web",), set()),
        (("https://example.com/ns/shop/gateway/web",), set()),
        (("spiffe://example.com/ns/Shop/gateway/web",), set()),
        ((SPIFFE, "spiffe://example.com/ns/shop/gateway/"), {"shop/web"}),
    ],
)
def test_the_gateways_of_a_certificate(uris: tuple[str, ...], gateways: set[str] | None) -> None:
    expected: Gateways = None if gateways is None else frozenset(gateways)
    assert admission.named(uris) == expected
    assert Admission().admit(peer(uris=uris)) == Right(expected)


def test_with_both_a_gateway_must_be_allowed_by_both(file: Path) -> None:
    rule, other = Admission(Tokens(file)), "spiffe://example.com/ns/shop/gateway/api"
    both = ("shop/web", "shop/api", "x/y")
    assert allowed(rule.admit(peer(f"Bearer {WEB}", uris=(SPIFFE,))), *both) == ["shop/web"]
    assert allowed(rule.admit(peer(f"Bearer {WEB}", uris=(other,))), *both) == []
    assert allowed(rule.admit(peer(f"Bearer {ALL}", uris=(other,))), *both) == ["shop/api"]
    assert rule.admit(peer(uris=(SPIFFE,))) == admission.NO_TOKEN


def test_a_token_that_is_withdrawn_and_a_file_that_is_broken(file: Path) -> None:
    rule, web, everything = Admission(Tokens(file)), peer(f"Bearer {WEB}"), peer(f"Bearer {ALL}")
    before = rule.generation
    assert rule.keeps(web, "shop/web") and not rule.keeps(web, "shop/api") and rule.keeps(everything, "shop/api")
    file.write_text(f"{ALL}\n# and another size\n")
    os.utime(file, ns=(1, 1))
    assert rule.generation != before
    assert not rule.keeps(web, "shop/web") and rule.keeps(everything, "x/y")
    file.unlink()
    assert rule.generation != before
    assert rule.admit(everything) == admission.NO_TOKENS
    assert rule.keeps(everything, "x/y") and rule.keeps(web, "shop/web")  # nobody was withdrawn by a broken file


def test_a_token_that_somebody_else_knows_must_be_there() -> None:
    rule = Admission(needs_token=True)
    assert rule.admit(peer()) == admission.NO_TOKEN
    assert rule.admit(peer("Bearer a", "Bearer b")) == admission.SEVERAL
    assert rule.admit(peer("Bearer of-an-account")) == Right()
    assert rule.admit(peer("Bearer of-an-account", uris=(SPIFFE,))) == Right(frozenset({"shop/web"}))
    assert Admission().admit(peer()) == Right()
    assert Admission().generation == Admission(needs_token=True).generation == 0, "there are none that could change"


def test_with_a_file_of_tokens_they_count_also_where_one_is_needed(file: Path) -> None:
    rule = Admission(Tokens(file), needs_token=True)
    assert rule.admit(peer("Bearer of-an-account")) == admission.WRONG_TOKEN
    file.write_text("another-token-of-all # and another size\n")
    assert rule.admit(peer("Bearer another-token-of-all")) == Right(), "whoever is new meets the newest file"


def test_a_peer_does_not_show_its_token() -> None:
    assert WEB not in repr(peer(f"Bearer {WEB}"))


def test_a_refusal_is_told_once_a_minute_for_each_host_and_reason() -> None:
    said = Complaints()
    assert said.is_news("ipv4:10.0.0.1:1", "a", 0.0)
    assert not said.is_news("ipv4:10.0.0.1:2", "a", 59.0)
    assert said.is_news("ipv4:10.0.0.1:2", "b", 59.0) and said.is_news("ipv4:10.0.0.2:2", "a", 59.0)
    assert said.is_news("ipv4:10.0.0.1:3", "a", 60.0)
    said = Complaints()
    for number in range(admission.MOST_NOTED):
        assert said.is_news(f"ipv4:10.1.{number}.1:1", "a", 61.0)
    assert not said.is_news("ipv4:10.1.0.1:1", "a", 61.0), "so many are remembered"
    assert said.is_news("ipv4:10.2.0.1:1", "a", 61.0)
    assert said.is_news("ipv4:10.1.0.1:1", "a", 61.0), "and no more"
    for number in range(admission.MOST_NOTED * 2):
        said.is_news(f"ipv4:10.1.{number}.1:1", "a", 61.0)
    assert len(said._until) <= admission.MOST_NOTED
