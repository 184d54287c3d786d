"""Entry of `gatewright` and of `python -m controlplane.cli`: picks the command, runs it, ends with its exit code.

Loads only the module of the chosen command. An expected failure is one message and an exit code (`exits`); a traceback
means a bug in the product.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

from controlplane.cli import exits, parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; `argv` without the program's name (default: of this process). Returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["proxy"]:
        return _run("controlplane.cli.proxy", words[1:])  # argparse would take the proxy's --help for its own
    options = parser.build()
    arguments = options.parse_args(words)
    command = "version" if arguments.version else arguments.command
    if command is None:
        options.print_help()
        return exits.USAGE
    if arguments.version:
        arguments.output = "text"
    module = next(row.module for row in parser.COMMANDS if row.name == command)
    return _run(module, arguments)


def _run(module: str, arguments: object) -> int:
    try:
        return int(importlib.import_module(module).run(arguments))
    except exits.Failure as failure:
        print(f"gatewright: {failure.message}", file=sys.stderr)
        return failure.code
    except ModuleNotFoundError as absent:
        if (absent.name or "").partition(".")[0] in ("controlplane", "gatewright", "dataplane"):
            raise
        cure = "`pip install gatewright` brings it"
        print(f"gatewright: the package {absent.name!r} is not installed; {cure}", file=sys.stderr)
        return exits.DEPENDENCY
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except BrokenPipeError:
        # `gatewright status | head`: the reader has seen enough. Python would complain once more while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.OK


if __name__ == "__main__":
    sys.exit(main())
