"""One Pod: a network namespace with an address, and each container as a process in a private copy of the root file
system, with its volumes where it wants them."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import aiohttp

from tests.cluster.rig.api import Api, ApiError, Json
from tests.cluster.rig.shell import BRIDGE, NODE_ADDRESS, sh, stamp
from tests.cluster.rig.volumes import Contents, expanded

log = logging.getLogger("rig")

GRACE = 1.0
"""Seconds from SIGTERM to SIGKILL, at most: tests make many short-lived Gateways."""
LOOK = 0.05
"""Seconds between two looks whether a container is ready."""
NO_PROBE = 5.0
"""Seconds after which a container without a probe, and without a socket, counts as ready."""
MOST_LINES = 20_000
LONGEST_BACKOFF = 20.0

Command = Callable[[Json], list[str] | None]
"""What runs for a container: by its image, since there are none."""


class Pod:
    """Runs from its making to `stop`. `changed` is called when it becomes ready, or is not any more."""

    def __init__(
        self, api: Api, made: Json, number: int, folder: Path, command: Command, changed: Callable[[], None], port: int
    ) -> None:
        self.meta: Json = made["metadata"]
        self.spec: Json = made["spec"]
        self.address = f"10.244.{1 + number // 250}.{1 + number % 250}"
        self.space = f"p{number}"
        self.is_ready = self.is_stopping = False
        self.lines: dict[str, collections.deque[tuple[float, bytes]]] = {}
        self._api, self._command, self._changed = api, command, changed
        self._folder = folder / "pods" / f"{number}-{self.meta['name']}"
        self._contents = Contents(api, made, self.address, port)
        self._path = f"/api/v1/namespaces/{self.meta['namespace']}/pods/{self.meta['name']}"
        self._started = stamp()
        self._telling = asyncio.Lock()
        """Of several containers the last word must not be overtaken by one before it."""
        self._restarts: collections.Counter[str] = collections.Counter()
        self._ready: dict[str, bool] = {}
        self._processes: dict[str, asyncio.subprocess.Process] = {}
        self._task = asyncio.create_task(self._run())

    def __str__(self) -> str:
        return f"{self.meta['namespace']}/{self.meta['name']}"

    async def _run(self) -> None:
        try:
            if not await sh(self._network()):
                return
            for volume in self.spec.get("volumes", ()):
                await self._contents.volume(volume, self._folder / "volumes" / volume["name"])
            await self._tell()  # its address, before it is ready
            await asyncio.gather(*map(self._container, self.spec["containers"]))
        except Exception:
            log.exception("%s cannot run", self)

    def _network(self) -> str:
        space = self.space
        sysctls = (self.spec.get("securityContext") or {}).get("sysctls") or ()
        settings = [f"ip netns exec {space} sysctl -qw {each['name']}={each['value']}" for each in sysctls]
        return "\n".join([
            f"ip netns add {space}",
            f"ip link add {space} mtu 65535 type veth peer name eth0 netns {space}",
            f"ip link set {space} master {BRIDGE} up",
            f"ip -n {space} link set lo up",
            f"ip -n {space} addr add {self.address}/16 dev eth0",
            f"ip -n {space} link set eth0 mtu 65535 up",
            f"ip -n {space} route add default via {NODE_ADDRESS}",
            *settings,
        ])  # fmt: skip

    async def _container(self, container: Json) -> None:
        name, environment = container["name"], await self._contents.environment(container)
        command = self._command(container)
        if command is None:
            log.error("%s: nothing is known to run for image %s", self, container["image"])
            return
        arguments = [expanded(each, environment) for each in [*command, *container.get("args", ())]]
        script = self._script(container, arguments)
        self.lines[name] = collections.deque(maxlen=MOST_LINES)
        while not self.is_stopping:
            process = self._processes[name] = await asyncio.create_subprocess_exec(
                *("ip", "netns", "exec", self.space, "unshare", "-m", "sh", str(script)),
                env=environment,
                limit=2**20,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
            reading = asyncio.create_task(self._read(name, process))
            watching = asyncio.create_task(self._watch(container, process))
            code = await process.wait()
            watching.cancel()
            await reading
            if not self.is_stopping:
                last = self.lines[name][-1][1] if self.lines[name] else b""
                log.warning("%s: %s ended with %d: %s", self, name, code, last.decode(errors="replace").strip())
                self._restarts[name] += 1
                await self._become(name, ready=False)
                await asyncio.sleep(min(2.0 ** self._restarts[name], LONGEST_BACKOFF))

    def _script(self, container: Json, arguments: list[str]) -> Path:
        """Mounts, then the program. What is mounted inside is done in the new root: paths may lead through links."""
        root = self._folder / "root" / container["name"]
        folders = " ".join(str(root / each) for each in ("upper", "work", "merged"))
        merged = root / "merged"
        inner = [
            *self._mounts(container),
            f"cd {container.get('workingDir', '/')}",
            f'exec {self._as_user(container)}"$@"',
        ]
        text = "\n".join([
            "set -e",
            f"mkdir -p {folders}",
            f"mount -t overlay overlay -o lowerdir=/,upperdir={root}/upper,workdir={root}/work {merged}",
            *(f"mkdir -p {merged}{each}; mount --rbind {each} {merged}{each}" for each in _elsewhere()),
            # Programs of the host are the image, for whatever user runs.
            f"chmod o+x {merged}/root; mkdir -p {merged}/.volumes; rm -f {merged}/etc/resolv.conf",
            f"printf 'nameserver {NODE_ADDRESS}\\nsearch {self.meta['namespace']}.svc.cluster.local svc.cluster.local"
            f" cluster.local\\noptions ndots:5\\n' > {merged}/etc/resolv.conf",
            *([f"mount --rbind {self._folder}/volumes {merged}/.volumes"] if self.spec.get("volumes") else []),
            f"exec chroot {merged} sh -ec {shlex.quote(chr(10).join(inner))} sh {shlex.join(arguments)}",
        ])  # fmt: skip
        script = self._folder / f"{container['name']}.sh"
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(text + "\n")
        return script

    def _mounts(self, container: Json) -> list[str]:
        empty = {each["name"] for each in self.spec.get("volumes", ()) if "emptyDir" in each}
        found = []
        for mount in container.get("volumeMounts", ()):
            at, source = shlex.quote(mount["mountPath"]), f"/.volumes/{mount['name']}"
            if mount.get("subPath"):
                found.append(f"mkdir -p $(dirname {at}); touch {at}; mount --bind {source}/{mount['subPath']} {at}")
            elif mount["name"] not in empty:
                found.append(f"mkdir -p {at}; mount --bind {source} {at}")
            else:  # the private root is a folder of its own, and one mounted over /tmp would hide programs of the host
                found.append(f"mkdir -p {at}; chmod 1777 {at}")
        return found

    def _as_user(self, container: Json) -> str:
        context = (self.spec.get("securityContext") or {}) | (container.get("securityContext") or {})
        user, group = context.get("runAsUser"), context.get("runAsGroup", context.get("runAsUser"))
        if not user:
            return ""
        return f"setpriv --reuid {user} --regid {group} --clear-groups --no-new-privs "

    async def _read(self, name: str, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        with (self._folder / f"{name}.log").open("ab") as file, contextlib.suppress(ValueError):
            async for line in process.stdout:
                self.lines[name].append((time.time(), line))
                file.write(line)
                file.flush()

    async def _watch(self, container: Json, process: asyncio.subprocess.Process) -> None:
        """Until it is ready."""
        probe, began = container.get("readinessProbe") or {}, time.monotonic()
        has_probe = "httpGet" in probe or "tcpSocket" in probe
        async with aiohttp.ClientSession() as http:
            while True:
                if has_probe:
                    is_ready = await self._probe(container, probe, http)
                else:
                    is_ready = _listens(process.pid) or time.monotonic() - began > NO_PROBE
                if is_ready:
                    await self._become(container["name"], ready=True)
                    return
                await asyncio.sleep(LOOK)

    async def _probe(self, container: Json, probe: Json, http: aiohttp.ClientSession) -> bool:
        target = probe.get("httpGet") or probe["tcpSocket"]
        port = target["port"]
        if isinstance(port, str):
            port = next(each["containerPort"] for each in container["ports"] if each.get("name") == port)
        try:
            if "httpGet" not in probe:
                (await asyncio.open_connection(self.address, port))[1].close()
                return True
            url = f"{target.get('scheme', 'HTTP').lower()}://{self.address}:{port}{target.get('path', '/')}"
            async with http.get(url, timeout=aiohttp.ClientTimeout(2), ssl=False) as answer:
                return answer.status < 400
        except (OSError, aiohttp.ClientError, TimeoutError):
            return False

    def port(self, service_port: Json) -> int:
        """The number behind a Service port's `targetPort`, which may be a name."""
        target = service_port.get("targetPort", service_port["port"])
        if isinstance(target, int):
            return target
        ports = [each for container in self.spec["containers"] for each in container.get("ports", ())]
        return int(next((each["containerPort"] for each in ports if each.get("name") == target), service_port["port"]))

    async def _become(self, container: str, *, ready: bool) -> None:
        self._ready[container] = ready
        self.is_ready = all(self._ready.get(each["name"], False) for each in self.spec["containers"])
        await self._tell()
        self._changed()

    async def _tell(self) -> None:
        async with self._telling:
            await self._write_status()

    async def _write_status(self) -> None:
        now, ready = stamp(), self.is_ready
        kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        conditions = [
            {"type": kind, "status": "True" if ready or kind in kinds[:2] else "False", "lastTransitionTime": now}
            for kind in kinds
        ]
        status = {
            "phase": "Running",
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "hostIP": NODE_ADDRESS,
            "hostIPs": [{"ip": NODE_ADDRESS}],
            "startTime": self._started,
            "conditions": conditions,
            "containerStatuses": [self._container_status(each, now) for each in self.spec["containers"]],
        }
        with contextlib.suppress(ApiError):
            await self._api.patch(f"{self._path}/status", {"status": status})

    def _container_status(self, container: Json, now: str) -> Json:
        ready = self._ready.get(container["name"], False)
        state: Json = {"running": {"startedAt": now}} if ready else {"waiting": {"reason": "ContainerCreating"}}
        return {
            "name": container["name"],
            "image": container["image"],
            "imageID": container["image"],
            "ready": ready,
            "started": ready,
            "restartCount": self._restarts[container["name"]],
            "state": state,
        }

    def _signal(self, number: int) -> None:
        for process in self._processes.values():
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)

    async def stop(self) -> None:
        """Ends its processes, then the Pod. May be called again."""
        if self.is_stopping:
            return
        self.is_stopping = True
        self._changed()
        self._signal(signal.SIGTERM)
        ends = [asyncio.ensure_future(process.wait()) for process in self._processes.values()]
        if ends:
            await asyncio.wait(ends, timeout=GRACE)
        self._signal(signal.SIGKILL)
        await asyncio.gather(*ends)
        self._task.cancel()
        await sh(f"ip netns del {self.space}; rm -rf {self._folder}/root {self._folder}/volumes")
        body = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.meta["uid"]}}
        with contextlib.suppress(ApiError):
            await self._api.call("DELETE", self._path, body)


def _elsewhere() -> list[str]:
    """What is on other file systems than the root, and belongs into a container: an overlay shows one alone."""
    root = Path("/").stat().st_dev
    programs = [Path(each) for each in (sys.prefix, sys.base_prefix)]
    programs += [Path(__file__).resolve().parents[3]]
    return ["/proc", "/dev", "/sys", *dict.fromkeys(str(each) for each in programs if each.stat().st_dev != root)]


def _listens(pid: int) -> bool:
    """Whether something of the process's network listens; of UDP, is bound."""
    for table, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        with contextlib.suppress(OSError):
            rows = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
            if any(row.split()[3] == state for row in rows):
                return True
    return False
