"""Streams of MCP servers over real sockets, where much may have come before whoever takes it has its turn."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.fakes.socket_proxy import serving

FILE = """
binds:
- port: 8080
  listeners:
  - name: http
    routes:
    - name: mcp
      hostnames: [a]
      backends: [{mcp: {targets: [{name: one, static: {host: 127.0.0.1, port: %d}}]}}]
"""
RESULT = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18"}}).encode()


@pytest.mark.parametrize("size", [1000, 65_536, 1_000_000])
async def test_a_server_whose_first_bytes_fill_the_buffer_is_read_on(size: int) -> None:
    """Its head and more than is held come at once: it is stopped, and whoever takes that lets it go on."""
    content = b": " + b"x" * size + b"\n\ndata: " + RESULT + b"\n\n"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(content)
        writer.write(head + content)
        await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, serving(FILE % server.sockets[0].getsockname()[1]) as proxy:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}).encode()
        lines = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        answer = await proxy.ask("POST", "/mcp", body, lines)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n") and answer.count(b"x") >= size
        assert RESULT in answer
