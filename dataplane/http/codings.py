"""Content codings (RFC 9110 8.4.1, RFC 7932, RFC 8878): one compressor for each response, of bounded memory.

A library is loaded with the first policy that names its coding.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, Protocol

GZIP_LEVEL: Final = 5
BROTLI_QUALITY: Final = 4
BROTLI_WINDOW: Final = 18
"""Bits of the window; 22 is usual, and takes 16 times the memory."""
ZSTD_LEVEL: Final = 3
ZSTD_WINDOW: Final = 18
"""Bits of the window: clients take up to 23 (RFC 9659)."""

_GZIP: Final = 16 + zlib.MAX_WBITS


class Compressor(Protocol):
    """Of one response."""

    def compress(self, data: bytes) -> bytes: ...

    def flush(self) -> bytes:
        """All that it was given is in what has come out by then."""

    def finish(self) -> bytes:
        """The end."""


class Gzip:
    __slots__ = ("_inner", "compress")

    def __init__(self) -> None:
        self._inner = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP)
        self.compress = self._inner.compress

    def flush(self) -> bytes:
        return self._inner.flush(zlib.Z_SYNC_FLUSH)

    def finish(self) -> bytes:
        return self._inner.flush()


class Brotli:
    __slots__ = ("compress", "finish", "flush")

    def __init__(self) -> None:
        inner = _brotli().Compressor(quality=BROTLI_QUALITY, lgwin=BROTLI_WINDOW)
        self.compress, self.flush, self.finish = inner.process, inner.flush, inner.finish


class Zstd:
    __slots__ = ("_inner", "_module", "compress")

    def __init__(self) -> None:
        self._module = zstd = zstd_module()
        options = {
            zstd.CompressionParameter.compression_level: ZSTD_LEVEL,
            zstd.CompressionParameter.window_log: ZSTD_WINDOW,
        }
        self._inner = zstd.ZstdCompressor(options=options)
        self.compress = self._inner.compress

    def flush(self) -> bytes:
        made: bytes = self._inner.flush(self._inner.FLUSH_BLOCK)
        return made

    def finish(self) -> bytes:
        made: bytes = self._inner.flush(self._inner.FLUSH_FRAME)
        return made


@cache
def _brotli() -> Any:  # Any: a module without types
    import brotli

    return brotli


@cache
def zstd_module() -> Any:  # Any: one of two modules of the same names
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


CODINGS: Final[Mapping[bytes, Callable[[], Compressor]]] = {b"gzip": Gzip, b"br": Brotli, b"zstd": Zstd}
"""By name, as in Accept-Encoding and Content-Encoding."""
