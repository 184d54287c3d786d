"""The few functions of OpenSSL that pyOpenSSL has in its binding and does not offer: each wrapped once, with types.

`lacks` says what of them is missing in the library that is installed; tests ask it, and so does a worker that starts.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from OpenSSL import SSL

_binding: Any = SSL._lib  # type: ignore[attr-defined]  # functions of C: nobody has written down their types

_NAMES = ("SSL_CTX_set1_curves_list", "SSL_session_reused", "SSL_get0_group_name", "SSL_CTX_use_certificate_chain_file")


def lacks() -> list[str]:
    """Names of functions that the installed library does not have."""
    return [name for name in _NAMES if not hasattr(_binding, name)]


def set_groups(context: SSL.Context, names: Sequence[str]) -> bool:
    """Allow exactly these groups, in this order; False: OpenSSL does not know one of them."""
    found: int = _binding.SSL_CTX_set1_curves_list(context._context, ":".join(names).encode())
    if found != 1:
        _binding.ERR_clear_error()
    return found == 1


def is_resumed(connection: SSL.Connection) -> bool:
    """Whether the handshake took up a session of an earlier one."""
    found: int = _binding.SSL_session_reused(connection._ssl)
    return found == 1


def use_chain(context: SSL.Context, chain: bytes) -> None:
    """Present this certificate and its chain (PEM, the certificate first), beside those of other kinds of keys.

    pyOpenSSL has one chain for all certificates of a context; of a file OpenSSL takes one for each. Raises `SSL.Error`.
    """
    with _as_file(chain) as path:
        context.use_certificate_chain_file(path)


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A file in memory, where the system has such; certificates are public."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create("chain", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name
