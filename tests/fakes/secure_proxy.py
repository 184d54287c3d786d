"""A proxy in memory whose listeners have TLS, and clients that speak it, by pyOpenSSL: no socket on either side.

proxy = SecureProxy(ROUTES, http=Secure(authority.issue("shop.example")))
client = TlsClient(proxy.connect(), server_name="shop.example", authority=authority)
client.send(b"GET / HTTP/1.1\\r\\nHost: shop.example\\r\\n\\r\\n")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from OpenSSL import SSL, crypto

from dataplane.table.store import RESOURCE_TYPE, Change
from gatewright.api.standalone import standalone
from gatewright.wire.v1 import connection_pb2, listener_pb2, resource_pb2, tls_pb2
from tests.fakes.certificates import Authority, Issued
from tests.fakes.memory_proxy import FakeTransport, MemoryProxy


@dataclass(frozen=True)
class Secure:
    """TLS of a listener."""

    certificates: tuple[Issued, ...]
    validation: tls_pb2.ClientValidation | None = None
    mode: tls_pb2.TlsMode = tls_pb2.TLS_MODE_TERMINATE


def secure(*certificates: Issued, validation: tls_pb2.ClientValidation | None = None) -> Secure:
    return Secure(certificates, validation)


class SecureProxy(MemoryProxy):
    """`listeners`: TLS of the listeners with these names; `frontend`: `frontend.tls` of their Gateway."""

    def __init__(
        self,
        text: str,
        listeners: dict[str, Secure],
        frontend: connection_pb2.FrontendTls | None = None,
        allow_refused: bool = False,
        **more: Any,
    ) -> None:
        self.listeners = listeners
        self.frontend = frontend
        self.allow_refused = allow_refused
        super().__init__(text, **more)

    def counted(self, metric: str) -> dict[str, int]:
        """What a counter holds, by its first label."""
        series = self.metrics.series()
        return {each.labels[0]: values[0] for each, values in series if each.metric.name == metric}

    def load(self, text: str) -> None:
        loaded = standalone.load(text, "config.yaml")
        assert not loaded.problems, [str(problem) for problem in loaded.problems]
        self.apply(secured(loaded.resources, self.listeners, self.frontend))
        if not self.allow_refused:
            assert not self.applier.outcome.refused, self.applier.outcome.refused

    def apply(self, resources: list[resource_pb2.Resource]) -> None:
        """Make these all that there is."""
        changes = [Change(RESOURCE_TYPE, r.key, r.SerializeToString()) for r in resources]
        known = {change.name for change in changes}
        changes += [Change(RESOURCE_TYPE, key, None) for key in getattr(self, "keys", set()) - known]
        self.keys = known
        for _ in self.applier.apply(changes):
            pass


def secured(
    resources: Iterable[resource_pb2.Resource],
    listeners: Mapping[str, Secure],
    frontend: connection_pb2.FrontendTls | None = None,
) -> list[resource_pb2.Resource]:
    """These resources, in which listeners have TLS, by their names; `frontend`: `frontend.tls` of their Gateway."""
    found, gateway = list(resources), ""
    for resource in list(found):
        if resource.HasField("listener") and resource.listener.name in listeners:
            found += _secure(resource.listener, listeners[resource.listener.name])
        elif resource.HasField("bind"):
            gateway = resource.bind.gateway
    if frontend is not None:
        _, namespace, name = gateway.split("/")
        policy = resource_pb2.Resource(key=f"policy/{namespace}/edge/frontend_tls")
        source = policy.policy.source
        source.kind, source.namespace, source.name = "GatewayPolicy", namespace, "edge"
        place = policy.policy.places.add()
        place.object.kind, place.object.namespace, place.object.name = "Gateway", namespace, name
        policy.policy.frontend_tls.CopyFrom(frontend)
        found.append(policy)
    return found


def _secure(listener: listener_pb2.Listener, wanted: Secure) -> list[resource_pb2.Resource]:
    """Give a listener TLS; answers its Secrets."""
    listener.protocol = listener_pb2.PROTOCOL_HTTPS
    listener.tls.mode = wanted.mode
    secrets = []
    for number, issued in enumerate(wanted.certificates):
        secret = resource_pb2.Resource(key=f"secret/default/{listener.name}-{number}")
        for name, value in issued.entries.items():
            secret.secret.data[name] = value
        secrets.append(secret)
        listener.tls.certificates.append(secret.key)
    if wanted.validation is not None:
        listener.tls.client_validation.CopyFrom(wanted.validation)
    return secrets


class TlsClient:
    """The far end of a connection in memory. Handshakes at once; `error` says why it could not."""

    def __init__(
        self,
        transport: FakeTransport,
        server_name: str = "",
        authority: Authority | None = None,
        alpn: tuple[bytes, ...] = (),
        context: SSL.Context | None = None,
        session: SSL.Session | None = None,
        identity: Issued | None = None,
        piece: int = 0,
        handshake: bool = True,
    ) -> None:
        """`piece`: bytes that are sent at a time; 0: all at once."""
        context = context or client_context(authority, alpn, identity)
        self.far = transport
        self.piece = piece
        self.tls = SSL.Connection(context, None)
        self.tls.set_connect_state()
        if server_name:
            self.tls.set_tlsext_host_name(server_name.encode())
        if session is not None:
            self.tls.set_session(session)
        self.received = b""
        self.error = ""
        self.ended = False
        """The server has said close_notify."""
        if handshake:
            self.handshake()

    def handshake(self) -> None:
        for _ in range(10):
            try:
                self.tls.do_handshake()
            except SSL.WantReadError:
                if not self.flush():
                    break
                self._take()
            except SSL.Error as error:
                self.error = str(error.args[0][-1][2]) if error.args and error.args[0] else "closed"
                self.flush()
                return
            else:
                self.flush()
                self._take()
                return
        self.error = self.error or "no answer"

    def flush(self) -> bool:
        """Send what there is to send; whether there was something."""
        sent = False
        while True:
            try:
                data = self.tls.bio_read(65536)
            except SSL.WantReadError:
                return sent
            for at in range(0, len(data), self.piece or len(data)):
                if self.far.open:
                    sent = True
                    self.far.send(data[at : at + (self.piece or len(data))])

    def _take(self) -> None:
        data = self.far.take()
        if data:
            self.tls.bio_write(data)

    def send(self, data: bytes) -> None:
        self.tls.sendall(data)
        self.flush()

    def read(self) -> bytes:
        """All that came, decrypted."""
        self._take()
        try:
            while True:
                self.received += self.tls.recv(65536)
        except SSL.WantReadError:
            pass
        except SSL.ZeroReturnError:
            self.ended = True
        except SSL.Error as error:
            self.error = str(error.args[0][-1][2]) if error.args and error.args[0] else "closed"
        return self.received

    def close(self) -> None:
        """Say close_notify."""
        self.tls.shutdown()
        self.flush()


def client_context(
    authority: Authority | None = None, alpn: tuple[bytes, ...] = (), identity: Issued | None = None
) -> SSL.Context:
    """Without an authority servers are not verified."""
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    if authority is not None:
        store = context.get_cert_store()
        assert store is not None
        store.add_cert(crypto.X509.from_cryptography(authority.certificate))
        context.set_verify(SSL.VERIFY_PEER)
    if alpn:
        context.set_alpn_protos(list(alpn))
    if identity is not None:
        first, *chain = x509.load_pem_x509_certificates(identity.chain)
        context.use_certificate(first)
        for each in chain:
            context.add_extra_chain_cert(each)
        context.use_privatekey(load_pem_private_key(identity.key, None))  # type: ignore[arg-type]  # a key of TLS
    return context
