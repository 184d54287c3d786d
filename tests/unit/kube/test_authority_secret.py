"""The authority of xDS in its Secret: made once, replaced by the leader, taken over by the others, never guessed."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
from typing import Any

import pytest

from controlplane.kube.access import ApiError
from controlplane.kube.authority_secret import LOOK, NAME, TRIES, AuthoritySecret
from controlplane.xds.trust import authority as authorities
from controlplane.xds.trust.authority import LIFETIME, RENEW, SPREAD, Authority, UnusableAuthority
from tests.fakes.api_server import ApiServer
from tests.fakes.moved_loop import moved
from tests.harness.waiting import cancelled

PATH = "/api/v1/namespaces/system/secrets"
DAY = dt.timedelta(days=1)


class Controller:
    def __init__(self, server: ApiServer) -> None:
        self.now = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
        self.used: list[Authority] = []
        self.secret = AuthoritySecret(server, "system", self.used.append, lambda: self.now)

    @property
    def bundle(self) -> bytes:
        return self.used[-1].bundle


@pytest.fixture
def server() -> ApiServer:
    made = ApiServer()
    made.define(PATH)
    return made


async def test_the_first_makes_it_and_the_others_use_it(server: ApiServer) -> None:
    one, two = Controller(server), Controller(server)
    await one.secret.load()
    await two.secret.load()
    assert one.bundle == two.bundle
    assert [method for method, _ in server.asked].count("POST") == 1
    assert server.objects[PATH][NAME]["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "gatewright"}


async def test_two_that_make_it_at_the_same_moment_agree(server: ApiServer) -> None:
    one, two = Controller(server), Controller(server)
    await one.secret.load()
    server.refuse.append(ApiError(404, "NotFound", "not there yet"))  # when two looked, it was not
    await two.secret.load()
    assert one.bundle == two.bundle


async def test_the_leader_replaces_it_and_the_other_follows(server: ApiServer) -> None:
    leader, other = Controller(server), Controller(server)
    await leader.secret.load()
    await other.secret.load()
    leader.now = other.now = leader.now + LIFETIME - RENEW + DAY
    first = leader.bundle
    await other.secret.look(replace=False)
    assert other.bundle == first
    await leader.secret.look(replace=True)
    await other.secret.look(replace=False)
    assert leader.bundle == other.bundle != first
    assert leader.used[-1].signing == other.used[-1].signing == leader.used[0].signing  # it does not sign yet
    leader.now += SPREAD + DAY
    await leader.secret.look(replace=True)
    await other.secret.look(replace=False)
    assert leader.used[-1].signing == other.used[-1].signing != leader.used[0].signing
    assert leader.used[0].signing in leader.used[-1].certificates


class Refusing(ApiServer):
    """Takes no other content of what is there."""

    status = 409

    async def request(self, method: str, path: str, *more: Any, **rest: Any) -> Any:
        if method == "PUT":
            raise ApiError(self.status, "", "no")
        return await super().request(method, path, *more, **rest)


async def test_one_that_cannot_be_replaced_is_trouble_unless_somebody_was_faster() -> None:
    server = Refusing()
    server.define(PATH)
    leader = Controller(server)
    await leader.secret.load()
    leader.now += LIFETIME - RENEW + DAY
    await leader.secret.look(replace=True)
    server.status = 403
    with pytest.raises(ApiError, match="403"):
        await leader.secret.look(replace=True)
    assert len(leader.used) == 1, "what is not in the Secret is used by nobody"


async def test_a_secret_of_another_form_is_not_written_over(server: ApiServer) -> None:
    data = {"ca.crt": base64.b64encode(b"somebody's").decode()}
    server.put(PATH, {"metadata": {"name": NAME}, "data": data})
    controller = Controller(server)
    with pytest.raises(UnusableAuthority, match=r"ca\.crt"):
        await controller.secret.load()
    with pytest.raises(UnusableAuthority):
        await controller.secret.look(replace=True)
    assert server.objects[PATH][NAME]["data"] == data


async def test_one_that_is_removed_is_made_anew_by_the_leader(server: ApiServer) -> None:
    leader, other = Controller(server), Controller(server)
    await leader.secret.load()
    await other.secret.load()
    server.delete(PATH, NAME)
    await other.secret.look(replace=False)
    assert NAME not in server.objects[PATH]
    await leader.secret.look(replace=True)
    await other.secret.look(replace=False)
    assert leader.bundle == other.bundle != leader.used[0].bundle


@moved
async def test_while_it_cannot_be_read_the_one_from_before_stays_and_that_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = ApiServer()
    server.define(PATH)
    controller = Controller(server)
    await controller.secret.load()
    following = asyncio.create_task(controller.secret.follow(lambda: True))
    try:
        server.refuse.extend([OSError("no route"), OSError("no route")])
        text = f"Secret system/{NAME}: no route; the authority from before stays in force"
        assert controller.secret.trouble == ""
        await asyncio.sleep(1)
        for _ in range(2):
            await asyncio.sleep(LOOK)
            assert controller.secret.trouble == text
            assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == [text]
        await asyncio.sleep(LOOK)
        assert controller.secret.trouble == ""
        server.delete(PATH, NAME)
        await asyncio.sleep(LOOK)
        assert NAME in server.objects[PATH], "whoever leads makes it anew"
    finally:
        await cancelled(following)


async def test_one_that_is_made_and_removed_again_and_again_is_given_up() -> None:
    class Forgetful(ApiServer):
        async def request(self, method: str, path: str, *more: Any, **rest: Any) -> Any:
            answer = await super().request(method, path, *more, **rest)
            if method == "POST":
                self.delete(PATH, NAME)
            return answer

    server = Forgetful()
    server.define(PATH)
    with pytest.raises(OSError, match="is made and removed again"):
        await Controller(server).secret.load()
    assert [method for method, _ in server.asked].count("POST") == TRIES


@pytest.mark.parametrize("refused", [["GET"], ["POST"]])
async def test_one_that_may_not_be_read_or_made_is_an_error(refused: list[str]) -> None:
    class Guarded(ApiServer):
        async def request(self, method: str, path: str, *more: Any, **rest: Any) -> Any:
            if method in refused:
                raise ApiError(403, "Forbidden", method)
            return await super().request(method, path, *more, **rest)

    server = Guarded()
    server.define(PATH)
    controller = Controller(server)
    with pytest.raises(ApiError, match=refused[0]):
        await controller.secret.load()
    assert (controller.used, server.objects[PATH]) == ([], {})


async def test_data_that_is_no_base64(server: ApiServer) -> None:
    server.put(PATH, {"metadata": {"name": NAME}, "data": {"ca.crt": "a"}})
    with pytest.raises(UnusableAuthority, match="base64"):
        await Controller(server).secret.load()


def test_the_account_of_a_controller_names_the_place() -> None:
    assert Controller(ApiServer()).secret.place == f"Secret system/{NAME}"
    assert authorities.BUNDLE == "ca.crt"  # what objects made for proxies name
