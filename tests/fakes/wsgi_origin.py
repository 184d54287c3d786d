"""A real WSGI server of the standard library as an endpoint: its application answers with its environ.

What a test reads is what Python applications see of a request (PEP 3333): header names in upper case with `_` for `-`,
lines of one such name joined by commas, and the path decoded.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def _environ(environ: dict[str, Any], start_response: Callable[..., object]) -> list[bytes]:
    body = json.dumps({name: value for name, value in environ.items() if type(value) is str}).encode()
    start_response("200 OK", [("content-type", "application/json"), ("content-length", str(len(body)))])
    return [body]


@contextmanager
def wsgi_origin() -> Iterator[int]:
    """Its port on 127.0.0.1. It answers each request with the text values of its environ, as JSON."""
    with make_server("127.0.0.1", 0, _environ, handler_class=_Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
