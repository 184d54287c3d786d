"""A small mesh: an authority that issues certificates by CSR over gRPC as Istio's does, and workloads that speak HBONE
by the library `h2`, as who opens tunnels and as who takes them.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID
from h2 import config, connection, events, settings

from gatewright.wire.external import workload_certificate_pb2 as pb
from tests.fakes.certificates import Authority, Issued, pem_of

METHOD = "CreateCertificate"
SERVICE = "istio.v1.auth.IstioCertificateService"
DOMAIN = "cluster.local"
TOKEN = "projected-token"
PORT = 15008


def identity(namespace: str, account: str, domain: str = DOMAIN) -> str:
    return f"spiffe://{domain}/ns/{namespace}/sa/{account}"


class MeshAuthority:
    """Signs for whoever has the token. `seconds`: for which its certificates are valid; `failing`: with what it answers
    instead; `changed`: what it makes of an answer."""

    def __init__(self, name: str = "Mesh Root") -> None:
        self.root = Authority(name)
        self.seconds = 3600.0
        self.failing = ""
        self.changed: Callable[[list[str]], list[str]] = lambda chain: chain
        self.tokens: list[str] = []
        self.clusters: list[str] = []
        self.keys: list[bytes] = []
        """Public keys that were asked for."""

    def workload(self, uri: str, seconds: float = 3600.0, begins: float = -60.0) -> Issued:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self.sign(uri, key.public_key(), seconds, begins)
        return Issued(certificate.public_bytes(Encoding.PEM), pem_of(key), certificate)

    def sign(self, uri: str, key: Any, seconds: float, begins: float = -1.0) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder().subject_name(x509.Name([])).issuer_name(self.root.name).public_key(key)
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now + timedelta(seconds=begins))
        builder = builder.not_valid_after(now + timedelta(seconds=seconds))
        names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri)])
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(names, critical=True)
        return builder.add_extension(x509.ExtendedKeyUsage(usages), False).sign(self.root.key, hashes.SHA256())

    async def answer(self, asked: bytes, context: Any) -> bytes:
        given = dict(context.invocation_metadata())
        self.tokens.append(given.get("authorization", "").removeprefix("Bearer "))
        self.clusters.append(given.get("clusterid", ""))
        if self.tokens[-1] != TOKEN:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you")
        if self.failing:
            await context.abort(grpc.StatusCode.UNAVAILABLE, self.failing)
        request = x509.load_pem_x509_csr(pb.WorkloadCertificateRequest.FromString(asked).csr.encode())
        assert request.is_signature_valid
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        uri = names.get_values_for_type(x509.UniformResourceIdentifier)[0]
        public = request.public_key()
        made = self.sign(uri, public, self.seconds).public_bytes(Encoding.PEM).decode()
        return pb.WorkloadCertificateResponse(
            cert_chain=self.changed([made, self.root.pem.decode()])
        ).SerializeToString()


@asynccontextmanager
async def serving(authority: MeshAuthority, folder: Path) -> AsyncIterator[dict[str, str]]:
    """The authority over TLS; the environment of a proxy that has its certificate from it."""
    own = authority.root.issue("127.0.0.1")
    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(authority.answer)
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler})])
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(own.key, own.chain)]))
    await server.start()
    (folder / "istio-token").write_text(TOKEN)
    (folder / "root-cert.pem").write_bytes(authority.root.pem)
    try:
        yield {
            "CA_ADDRESS": f"https://127.0.0.1:{port}",
            "CA_TOKEN_FILE": str(folder / "istio-token"),
            "CA_ROOT_FILE": str(folder / "root-cert.pem"),
            "TRUST_DOMAIN": DOMAIN,
            "POD_NAMESPACE": "shop",
            "SERVICE_ACCOUNT": "web",
        }
    finally:
        await server.stop(None)


def tls(issued: Issued | None, root: bytes, server: bool = False) -> ssl.SSLContext:
    """mTLS whose identities the peers check themselves, as workloads do. `issued` None: no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=root.decode())
    context.set_alpn_protocols(["h2"])
    if issued is not None:
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(issued.chain + issued.key)
            file.flush()
            context.load_cert_chain(file.name)
    return context


@dataclass(eq=False)
class Stream:
    """A connection within a tunnel, as its peer has it."""

    number: int
    authority: str = ""
    status: int | None = None
    content: bytearray = field(default_factory=bytearray)
    is_ended: bool = False
    is_reset: bool = False
    is_slow: bool = False
    """Nothing that comes is acknowledged."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, there: Callable[[Stream], bool]) -> None:
        while not there(self):
            self.changed.clear()
            await self.changed.wait()


class Tunnel(asyncio.Protocol):
    """One tunnel, of either side. `took(stream)` is called for each connection that is asked for, `came(stream, data)`
    for each piece of content."""

    def __init__(self, is_client: bool, streams: int = 1000) -> None:
        self.wire = connection.H2Connection(config.H2Configuration(client_side=is_client, header_encoding="utf-8"))
        first = {settings.SettingCodes.MAX_CONCURRENT_STREAMS: streams}
        self.wire.local_settings = settings.Settings(client=is_client, initial_values=first)
        self.streams: dict[int, Stream] = {}
        self.took: Callable[[Stream], None] = lambda _: None
        self.came: Callable[[Stream, bytes], None] = lambda _, __: None
        self.closed = asyncio.Event()
        self.greeted = asyncio.Event()
        self.transport: Any = None
        self._waiting: dict[int, bytearray] = {}

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.wire.initiate_connection()
        self.wire.increment_flow_control_window(2**30)
        self.write()

    def write(self) -> None:
        data = self.wire.data_to_send()
        if data and not self.transport.is_closing():
            self.transport.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        self.closed.set()
        for stream in self.streams.values():
            stream.is_reset = stream.is_reset or not stream.is_ended
            stream.changed.set()

    def ask(self, authority: str) -> Stream:
        number = self.wire.get_next_available_stream_id()
        self.wire.send_headers(number, [(":method", "CONNECT"), (":authority", authority)])
        self.streams[number] = Stream(number, authority)
        self.write()
        return self.streams[number]

    def answer(self, stream: Stream, status: int) -> None:
        self.wire.send_headers(stream.number, [(":status", str(status))], end_stream=status >= 300)
        self.write()

    def send(self, stream: Stream, data: bytes) -> None:
        self._waiting.setdefault(stream.number, bytearray()).extend(data)
        self._flow(stream.number)
        self.write()

    def _flow(self, number: int) -> None:
        waiting = self._waiting.get(number)
        while waiting:
            room = min(self.wire.local_flow_control_window(number), self.wire.max_outbound_frame_size, len(waiting))
            if room <= 0:
                return
            self.wire.send_data(number, bytes(waiting[:room]))
            del waiting[:room]

    def end(self, stream: Stream) -> None:
        self.wire.end_stream(stream.number)
        self.write()

    def data_received(self, data: bytes) -> None:
        for event in self.wire.receive_data(data):
            self._take(event)
        self.write()

    def _take(self, event: Any) -> None:
        number = getattr(event, "stream_id", None)
        if isinstance(event, events.RequestReceived):
            stream = self.streams[event.stream_id] = Stream(event.stream_id)
            stream.authority = dict(event.headers)[":authority"]
            self.took(stream)
        elif isinstance(event, (events.RemoteSettingsChanged, events.SettingsAcknowledged)):
            self.greeted.set()
            self._flow_all()
        elif isinstance(event, events.WindowUpdated):
            self._flow_all()
        elif number in self.streams:
            self._of(self.streams[number], event)

    def _of(self, stream: Stream, event: Any) -> None:
        if isinstance(event, events.ResponseReceived):
            stream.status = int(dict(event.headers)[":status"])
        elif isinstance(event, events.DataReceived):
            stream.content += event.data
            if not stream.is_slow:
                self.wire.acknowledge_received_data(event.flow_controlled_length, stream.number)
            self.came(stream, event.data)
        elif isinstance(event, events.StreamEnded):
            stream.is_ended = True
        elif isinstance(event, events.StreamReset):
            stream.is_reset = True
        stream.changed.set()

    def _flow_all(self) -> None:
        for number in list(self._waiting):
            if self.wire.streams.get(number) is not None and not self.streams[number].is_reset:
                self._flow(number)


async def open_tunnel(port: int, context: ssl.SSLContext, host: str = "127.0.0.1") -> Tunnel:
    """A tunnel to a workload. Raises OSError, ssl.SSLError."""
    loop = asyncio.get_running_loop()
    _, tunnel = await loop.create_connection(lambda: Tunnel(True), host, port, ssl=context)
    return tunnel


@dataclass(eq=False)
class Workload:
    """Takes tunnels at its address."""

    tunnels: list[Tunnel] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    serves: Callable[[Tunnel, Stream, bytes], None] = lambda tunnel, stream, data: None
    status: int = 200
    room: int = 1000
    """Streams of one tunnel."""

    def made(self) -> Tunnel:
        tunnel = Tunnel(False, self.room)
        tunnel.took = lambda stream: self._took(tunnel, stream)
        tunnel.came = lambda stream, data: self.serves(tunnel, stream, data)
        self.tunnels.append(tunnel)
        return tunnel

    def _took(self, tunnel: Tunnel, stream: Stream) -> None:
        self.streams.append(stream)
        tunnel.answer(stream, self.status)


def says_hello(tunnel: Tunnel, stream: Stream, data: bytes) -> None:
    """As an HTTP/1.1 server within the tunnel."""
    for _ in range(data.count(b"\r\n\r\n")):
        tunnel.send(stream, b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")


@asynccontextmanager
async def workload(host: str, context: ssl.SSLContext | None) -> AsyncIterator[Workload]:
    """One that takes tunnels at `host` on the port of the mesh, until the block ends. `context` None: in plain text."""
    made = Workload(serves=says_hello)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(made.made, host, PORT, ssl=context)
    try:
        yield made
    finally:
        server.close()
        for tunnel in made.tunnels:
            if tunnel.transport is not None:
                tunnel.transport.abort()


__all__ = ["MeshAuthority", "Workload", "identity", "open_tunnel", "says_hello", "serving", "tls", "workload"]
