"""Makes what Gateways want: applies objects that are missing or differ, removes those that are no longer wanted, and
reports addresses and failures.

Every controller follows what is there, so that all know the addresses; the one that leads acts. What acts keeps these
rules:

- An object that exists and was not made for the Gateway (`owned.is_made_for`) is never touched, whatever its name. It
  stops all objects of that Gateway: Pods that ran as a foreign account, or mounted a foreign Secret, would have what
  its owner gave to others.
- Pods are asked for only when what they name was seen to be made for the Gateway.
- Only objects with our label and a name that we give, whose controller is the Gateway, are removed: labels and owners
  are copied with what somebody makes of one that was made here. Objects of a Gateway that is gone are left to the
  cluster's garbage collector.

How one object is looked at, written and removed: `making`.
"""

from __future__ import annotations

import asyncio
import logging
import random as chance
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from controlplane.deploy.names import MANAGED_BY, MANAGED_OBJECTS, PRODUCT
from controlplane.deploy.request import WantedKey, WantedObject
from controlplane.derive import Change, Feed
from controlplane.kube.access import ApiError
from controlplane.kube.reading.reflector import Reflector
from controlplane.kube.writing.making import Contested, Looked, Objects, Requests
from controlplane.kube.writing.owned import (
    KINDS,
    Live,
    LiveChange,
    Owned,
    addresses,
    are_unready,
    cluster_addresses,
    is_made_for,
)
from controlplane.kube.writing.pending import Pending
from controlplane.translate.conditions import Condition, joined
from controlplane.translate.gateway.wanted import Failure, Outcome, Wanted
from controlplane.translate.keys import ObjectKey

log = logging.getLogger("controlplane.kube")

AT_ONCE: Final = 8
"""Gateways that are worked on at a time."""
AT_ONCE_OF_NAMESPACE: Final = 4
"""Those of one namespace: the API server may take long for these, and others wait."""
QUIET: Final = 0.005
"""Seconds that a change waits for others."""
NEEDED_BY_PODS: Final = ("ServiceAccount", "ConfigMap", "Secret", "Service")
"""Kinds of which a Pod finds what it needs, so they are made before its Deployment."""
NAMED_BY_PODS: Final = ("ServiceAccount", "ConfigMap", "Secret")
"""Kinds of which a Pod has the rights or the content, so they must be made for the Gateway before there is one."""
_REASONS: Final[dict[int, tuple[str, str]]] = {
    HTTPStatus.BAD_REQUEST: ("Accepted", "InvalidParameters"),
    HTTPStatus.UNPROCESSABLE_ENTITY: ("Accepted", "InvalidParameters"),
    HTTPStatus.FORBIDDEN: ("Programmed", "NoResources"),
}
"""Type and reason of the condition that says what the API server answered; `Programmed` `Pending` for all else."""


_NOT_TYPED: Final = "failed to create typed patch object"
"""How an API server answers 500 to a field that the kind does not have."""


_NO_RIGHT: Final = "cannot "
"""What an API server's 403 has where a role is missing; those of quotas and policies say something else."""
PROVISIONER: Final = "gatewright-provisioner"
"""The role that lets a controller make proxies (manifests/base/provisioner.yaml)."""


Report = Callable[[Mapping[str, Outcome | None]], Awaitable[None]]
IsElsewhere = Callable[[ObjectKey], bool]


class Deployer:
    """`report` takes outcomes by Gateway ("namespace/name"). `is_elsewhere`: whether a Gateway is there and belongs to
    somebody else now, so that what was made for it has to go."""

    def __init__(
        self,
        access: Requests,
        wanted: Feed[ObjectKey, Wanted],
        report: Report,
        is_elsewhere: IsElsewhere,
        random: Callable[[], float] = chance.random,
    ) -> None:
        self.failures = 0
        self.live = Live()
        self.reflectors = {
            kind: Reflector(info, access, self._seen, random, Owned(kind), {"labelSelector": MANAGED_OBJECTS})
            for kind, info in KINDS.items()
        }
        self.objects = Objects(access, self.live)
        self._wanted = wanted
        self._report = report
        self._is_elsewhere = is_elsewhere
        self._random = random
        self._pending = self._nothing_pending()
        self._woken = asyncio.Event()
        self._unseen: set[ObjectKey] = set()
        """Gateways that were not looked at since we lead."""
        self.looked = asyncio.Event()
        """Set when every Gateway was looked at once since we lead: failures are known."""
        self._failed: dict[ObjectKey, Failure] = {}
        self._troubles: dict[ObjectKey, str] = {}
        """What the log said last of a Gateway, until its objects are made."""
        self._reported: dict[ObjectKey, Outcome] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def _nothing_pending(self) -> Pending[ObjectKey]:
        return Pending(self._random, lambda gateway: gateway.namespace, AT_ONCE_OF_NAMESPACE)

    async def follow(self) -> None:
        """Until cancelled: what is there, in every controller."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors.values():
                group.create_task(reflector.run())

    async def listed(self) -> None:
        """Returns when all that is there was seen."""
        for reflector in self.reflectors.values():
            await reflector.listed.wait()

    async def lead(self) -> None:
        """Acts until cancelled; only while no other controller does."""
        await self.listed()
        self._unseen = {*self._wanted.present(), *self.live.gateways()}
        if not self._unseen:
            self.looked.set()
        end = self._wanted.subscribe(self._note)
        self._want(self.live.gateways())
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(self._work())
        finally:
            end()
            self.looked.clear()
            self._pending = self._nothing_pending()

    async def _seen(self, changes: Sequence[LiveChange]) -> None:
        concerned = self.live.take(changes)
        for key, body in changes:
            if body is None:  # removed by whomever, the garbage collector most of all
                self.objects.forget(key)
        await self._report_outcomes(concerned)
        self._want(concerned)

    def _note(self, changes: Sequence[Change[ObjectKey, Wanted]]) -> None:
        self._want([key for key, _, _ in changes])

    def look_for_moved(self) -> None:
        """Another class may own Gateways now. That nothing is wanted of one is known earlier than whose it is: a class
        comes by a watch of its own."""
        self._want(set(self.live.gateways()) - self._wanted.present().keys())

    def _want(self, gateways: Sequence[ObjectKey] | set[ObjectKey]) -> None:
        due = asyncio.get_running_loop().time() + QUIET
        for gateway in gateways:
            self._pending.want(gateway, due)
        self._woken.set()

    async def _report_outcomes(self, gateways: Sequence[ObjectKey] | set[ObjectKey]) -> None:
        """What is another outcome than before."""
        changed: dict[str, Outcome | None] = {}
        for gateway in gateways:
            made = self.live.of(gateway)
            services = [body for key, body in made.items() if key.kind == "Service"]
            found = Outcome(
                addresses(services),
                self._failed.get(gateway),
                are_unready(made.values()),
                cluster_addresses(services),
            )
            if found == self._reported.get(gateway, Outcome()):
                continue
            if found == Outcome():
                del self._reported[gateway]
                changed[str(gateway)] = None
            else:
                self._reported[gateway] = changed[str(gateway)] = found
        if changed:
            await self._report(changed)

    # Acting

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            gateway = self._pending.take(loop.time())
            if gateway is None:
                await self._rest(loop)
                continue
            error = await self._made_so(gateway)
            self._unseen.discard(gateway)
            if not self._unseen:
                self.looked.set()
            if error is None:
                self._pending.done(gateway, loop.time())
                self._troubles.pop(gateway, None)
            else:
                self.failures += 1
                wait = self._pending.failed(gateway, loop.time())
                if self._troubles.get(gateway) != error:  # once, not at each try
                    again = "again in %.1f s, then less and less often"
                    log.warning(f"objects of Gateway %s: %s; {again}", gateway, error, wait)
                self._troubles[gateway] = error
            self._woken.set()  # another one of the namespace may have its turn

    async def _rest(self, loop: asyncio.AbstractEventLoop) -> None:
        due = self._pending.next_due()
        self._woken.clear()
        try:
            async with asyncio.timeout(None if due is None else max(0.0, due - loop.time())):
                await self._woken.wait()
        except TimeoutError:
            return

    async def _made_so(self, gateway: ObjectKey) -> str | None:
        """One look at a Gateway; why it has to be looked at again, if so."""
        wanted = self._wanted.present().get(gateway)
        if wanted.as_it_is if wanted is not None else not self._is_elsewhere(gateway):
            await self._note_failures(gateway, ())  # one was about what is no longer asked for
            return None
        objects = wanted.objects if wanted is not None else ()
        there = await self.objects.looks([each.key for each in objects if each.key not in self.live.objects])
        found = [_foreign(key) for key in self._foreign(gateway, objects, there)]
        if not found:
            found = await self._made(gateway, objects, there)
        await self._note_failures(gateway, found)
        return found[0].message if found else None

    def _foreign(self, gateway: ObjectKey, objects: Sequence[WantedObject], there: Looked) -> list[WantedKey]:
        """Wanted objects whose names somebody else's objects have."""
        bodies = {each.key: self.live.objects.get(each.key, there.get(each.key)) for each in objects}
        return [key for key, body in bodies.items() if isinstance(body, dict) and not is_made_for(body, gateway)]

    async def _made(self, gateway: ObjectKey, objects: Sequence[WantedObject], there: Looked) -> list[Condition]:
        """Applies and removes; what failed."""
        first = [each for each in objects if each.key.kind in NEEDED_BY_PODS]
        found = await self._attempts({each.key: self.objects.ensure(each, there.get(each.key)) for each in first})
        named = [each.key for each in first if each.key.kind in NAMED_BY_PODS]
        if all(key in self.live.objects or isinstance(there.get(key), dict) for key in named):
            others = [each for each in objects if each.key.kind not in NEEDED_BY_PODS]
            found += await self._attempts({each.key: self.objects.ensure(each, there.get(each.key)) for each in others})
        kept = {each.key for each in objects}
        unwanted = {key: body for key, body in self.live.of(gateway).items() if key not in kept}
        return found + await self._attempts({key: self.objects.remove(key, body) for key, body in unwanted.items()})

    async def _note_failures(self, gateway: ObjectKey, found: Sequence[Condition]) -> None:
        if found:
            first, hint = found[0], _unbound(gateway.namespace)
            same = [each.message for each in found if each.type == first.type]
            said = joined([each.removesuffix(hint) for each in same])  # what to bind is said once
            message = said + hint if any(each.endswith(hint) for each in same) else said
            self._failed[gateway] = Failure(Condition(first.type, False, first.reason, message))
        else:
            self._failed.pop(gateway, None)
        await self._report_outcomes([gateway])

    async def _attempts(self, works: Mapping[WantedKey, Coroutine[Any, Any, None]]) -> list[Condition]:
        """All at a time."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._attempt(key, work)) for key, work in works.items()]
        return [each for task in tasks for each in task.result()]

    async def _attempt(self, key: WantedKey, work: Awaitable[None]) -> list[Condition]:
        try:
            await work
        except Contested:
            why = f"{key} is changed by somebody else each time that it was applied, so it is applied less often"
            return [Condition("Programmed", False, "Pending", why)]
        except ApiError as error:
            return [_refused(key, error)]
        except (OSError, TimeoutError) as error:
            return [Condition("Programmed", False, "Pending", f"{key}: {error or type(error).__name__}")]
        return []

    # What others ask

    def numbers(self) -> dict[str, dict[tuple[str, ...], float]]:
        """For the page of metrics."""
        return {
            "provisioning_writes_total": {
                ("written",): self.objects.writes,
                ("removed",): self.objects.removals,
                ("failed",): self.failures,
            },
            "provisioning_altered": {(): self.objects.altered},
            "provisioning_pending": {(): len(self._pending)},
        }

    def problems(self) -> list[str]:
        """Kinds that cannot be read now."""
        return [f"{each.info.plural}: {each.trouble}" for each in self.reflectors.values() if each.trouble]


def _foreign(key: WantedKey) -> Condition:
    why = (
        f"{key} exists and was not made for this Gateway (no label {MANAGED_BY}: {PRODUCT}, or another owner); it is"
        " left as it is, and nothing is made or changed for the Gateway while it is there"
    )
    return Condition("Programmed", False, "Invalid", why)


def _refused(key: WantedKey, error: ApiError) -> Condition:
    status = HTTPStatus.BAD_REQUEST if _NOT_TYPED in str(error) else error.status
    kind, reason = _REASONS.get(status, ("Programmed", "Pending"))
    is_unbound = status == HTTPStatus.FORBIDDEN and _NO_RIGHT in str(error)
    return Condition(kind, False, reason, f"{key}: {error}{_unbound(key.namespace) if is_unbound else ''}")


def _unbound(namespace: str) -> str:
    """What mends it where the role is not bound."""
    return (
        f"; bind the ClusterRole {PROVISIONER} in namespace {namespace} to have proxies made there:"
        f" `gatewright crds namespace | kubectl apply -n {namespace} -f -`"
    )
