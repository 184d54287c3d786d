"""A Kubernetes API server and its store, started here, and a client that speaks its HTTP.

Nothing but these two processes: no scheduler, no kubelet. Both listen on loopback and keep everything in one folder.
"""

from __future__ import annotations

import base64
import copy
import http.client
import json
import signal
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

from tests.harness.patience import PATIENCE
from tests.harness.ports import reserve
from tests.harness.processes import Program
from tests.harness.waiting import wait_until

_TOKEN = "tests"
_NOTED = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "users": ["system:serviceaccount:gatewright-system:gatewright-controller"]},
        {"level": "None"},
    ],
}
"""What the server notes: what the controller asks for."""


class Answer(NamedTuple):
    """Status and decoded body."""

    status: int
    body: dict[str, Any]

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))


def _posted(url: str, body: dict[str, Any]) -> bytes:
    with urlopen(Request(url, json.dumps(body).encode()), timeout=PATIENCE) as answer:
        return bytes(answer.read())


class ApiServer:
    """Started by `start`; `stop` ends both processes."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self.folder = folder
        self._store_port, self._peer_port, self.port = reserve(), reserve(), reserve()
        self._processes: list[Program] = []
        self._binaries = binaries
        self._token = _TOKEN
        self._connection: http.client.HTTPSConnection | None = None

    @property
    def audit(self) -> Path:
        """What the controller asked for; not there where somebody else runs the server."""
        return self.folder / "audit.log"

    def start(self) -> None:
        """Returns when the server says that it is ready. Raises RuntimeError with the end of its log when it ends."""
        (self.folder / "tokens.csv").write_text(f"{_TOKEN},admin,admin,system:masters\n")
        (self.folder / "audit.yaml").write_text(json.dumps(_NOTED))
        subprocess.run(
            ["openssl", "genrsa", "-out", str(self.folder / "sa.key"), "2048"], check=True, capture_output=True
        )
        self._run("etcd", self._store_command())
        self._run("kube-apiserver", self._server_command())
        server = self._processes[-1]
        try:
            wait_until(lambda: server.returncode is not None or self._is_ready(), server.log)
            if server.returncode is not None:
                raise RuntimeError(server.log()[-2000:])
        except BaseException:
            self.stop()
            raise

    def restart(self) -> None:
        """The server is killed, and comes back with what its store has."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._processes.pop().stop(signal.SIGKILL)
        self._run("kube-apiserver", self._server_command())
        wait_until(self._is_ready, self._processes[-1].log)

    def forget(self) -> None:
        """The history of the store is gone: who comes back with an older moment is answered 410, once the server has
        restarted and so has no history in its own memory either."""
        store = f"http://127.0.0.1:{self._store_port}/v3/kv"
        found = json.loads(_posted(f"{store}/range", {"key": base64.b64encode(b"\0").decode()}))
        _posted(f"{store}/compaction", {"revision": found["header"]["revision"], "physical": True})

    def kubeconfig(self, token: str = _TOKEN) -> dict[str, Any]:
        """What a file says that leads here, as an administrator or with another token."""
        return self._config({"server": f"https://127.0.0.1:{self.port}", "insecure-skip-tls-verify": True}, token)

    def _config(self, server: dict[str, Any], token: str) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": server}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "admin"}}],
            "current-context": "tests",
        }

    def _store_command(self) -> list[str]:
        client = f"http://127.0.0.1:{self._store_port}"
        peer = f"http://127.0.0.1:{self._peer_port}"
        flags = [f"--data-dir={self.folder / 'etcd'}", f"--listen-client-urls={client}"]
        return [*flags, f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}", "--unsafe-no-fsync"]

    def _server_command(self) -> list[str]:
        key = self.folder / "sa.key"
        return [
            f"--etcd-servers=http://127.0.0.1:{self._store_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self.folder / 'certs'}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--disable-admission-plugins=ServiceAccount",
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
            f"--audit-policy-file={self.folder / 'audit.yaml'}",
            f"--audit-log-path={self.audit}",
            "--endpoint-reconciler-type=none",
        ]

    def _run(self, name: str, flags: Sequence[str]) -> None:
        command, environment = [str(self._binaries / name), *flags], {"GOMEMLIMIT": "600MiB"}
        self._processes.append(Program(self.folder, name, command, environment=environment, cwd=self.folder))

    def _is_ready(self) -> bool:
        try:
            return self.request("GET", "/readyz").status == http.HTTPStatus.OK
        except OSError:
            return False

    def stop(self) -> None:
        """The server before its store: without it, it would wait for minutes."""
        self.close()
        for process in reversed(self._processes):
            process.stop(signal.SIGKILL)

    def request(
        self, method: str, path: str, body: object = None, content: str = "application/json", seconds: float = PATIENCE
    ) -> Answer:
        """One request. Raises OSError when the server does not answer; a kept connection that it closed is replaced."""
        text = None if body is None else json.dumps(body)
        kept = self._connection is not None
        try:
            return self._answer(method, path, text, content, seconds)
        except http.client.RemoteDisconnected:
            if not kept:
                raise
            return self._answer(method, path, text, content, seconds)

    def _answer(self, method: str, path: str, text: str | None, content: str, seconds: float) -> Answer:
        if self._connection is None:
            self._connection = self._connected(seconds)
        headers = {**self._authorization(), "Content-Type": content, "Accept": "application/json"}
        try:
            self._connection.request(method, path, text, headers)
            answer = self._connection.getresponse()
            raw = answer.read()
        except (OSError, http.client.HTTPException) as failure:
            self._connection.close()
            self._connection = None
            if isinstance(failure, OSError):  # also a connection closed without an answer
                raise
            raise OSError(str(failure)) from failure
        is_json = "json" in (answer.headers.get("Content-Type") or "")
        return Answer(answer.status, json.loads(raw) if is_json else {"message": raw.decode()})

    def _connected(self, seconds: float) -> http.client.HTTPSConnection:
        context = ssl._create_unverified_context()  # its certificate is its own, made a moment ago
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=seconds, context=context)

    def _authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def close(self) -> None:
        """The connection alone."""
        if self._connection is not None:
            self._connection.close()

    def another(self) -> ApiServer:
        """A connection of its own to the same server."""
        made = copy.copy(self)
        made._connection = None
        return made

    def signed_in(self, token: str) -> ApiServer:
        """The same server for somebody else, on a connection of its own."""
        made = self.another()
        made._token = token
        return made

    def hang_up(self) -> None:
        """End the connection that is kept; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def lines(self, path: str) -> Iterator[bytes]:
        """Of an answer that goes on, on a connection of its own."""
        connection = self._connected(PATIENCE)
        connection.request("GET", path, headers=self._authorization())
        try:
            yield from connection.getresponse()
        finally:
            connection.close()

    def apply(self, path: str, document: dict[str, Any]) -> Answer:
        """Server-side apply."""
        return self.request("PATCH", f"{path}?fieldManager=tests&force=true", document, "application/apply-patch+yaml")
