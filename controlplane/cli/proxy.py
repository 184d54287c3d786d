"""`gatewright proxy`: becomes the data plane. The two planes share no code; what is typed is handed on as it is, but
for `--from` and `--to` (`forward`)."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence

from controlplane.cli import children, exits, forward


def run(arguments: Sequence[str]) -> int:
    """Replaces this process, so that signals, exit code and process id are the proxy's own."""
    if importlib.util.find_spec("dataplane") is None:
        raise exits.Failure(exits.DEPENDENCY, "the proxy is not installed; `pip install gatewright` brings it")
    if not arguments or any(word in ("-h", "--help") for word in arguments):
        print(forward.HELP, flush=True)  # the proxy's own help follows, which does not know these options
    if forward.wanted(arguments):
        arguments = forward.with_file(arguments, os.environ)
    command = children.python("dataplane", *(arguments or ["--help"]))
    os.execv(sys.executable, command)
