"""`gatewright proxy --from ADDRESS --to ADDRESS`: the file of a proxy that only forwards, written for its user.

The file is in the folder of this user's runtime files, under a name of its own for each address: a second proxy from
the same address finds the port taken, as it should.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from controlplane import settings
from controlplane.cli import exits

OPTIONS: Final = ("--from", "--to")
HELP: Final = """\
gatewright proxy --from ADDRESS --to ADDRESS [option ...]

  --from ADDRESS  where to listen: HOST:PORT or :PORT
  --to ADDRESS    where all requests go: HOST:PORT or unix:/path; no file is needed

and all options of gatewright-proxy:
"""
_ADDRESS: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:]*):(?P<port>[0-9]{1,5})")


def wanted(arguments: Sequence[str]) -> bool:
    """Whether a command line of the proxy has one of our options."""
    return any(word in OPTIONS or word.startswith(tuple(f"{name}=" for name in OPTIONS)) for word in arguments)


def with_file(arguments: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The command line with `-f` in place of our options, and the file written. Raises Failure."""
    given, rest = _parser().parse_known_args(arguments)
    if given.source is None or given.target is None:
        raise exits.Failure(exits.USAGE, "--from and --to belong together: where to listen, and where requests go")
    if any(word in ("-f", "--file", "--xds") or word.startswith(("--file=", "--xds=")) for word in rest):
        raise exits.Failure(
            exits.USAGE, "--from and --to are all of the configuration: neither -f nor --xds goes with them"
        )
    content = json.dumps(configuration(given.source, given.target), indent=2)
    try:
        folder = settings.default_socket(environment).parent
        name = re.sub(r"[^0-9A-Za-z.]+", "-", given.source).strip("-")
        path = folder / f"forward-{name}.json"
        _write(path, content)
    except (settings.UnsafeFolder, OSError) as error:
        raise exits.Failure(exits.DEPENDENCY, f"no file can be written for --from and --to: {error}") from error
    return [*rest, "-f", str(path)]


def configuration(source: str, target: str) -> dict[str, object]:
    """The file's content. Raises Failure for what is no address."""
    host, port = _split(source, "--from")
    if target.startswith("unix:"):
        backend = target
    else:
        to_host, to_port = _split(target, "--to")
        backend = f"{to_host or '127.0.0.1'}:{to_port}"
    bind: dict[str, object] = {"port": port}
    if host:
        bind["addresses"] = [host.strip("[]")]
    route = {"name": "all", "backends": [{"host": backend}]}
    return {"binds": [{**bind, "listeners": [{"name": "http", "routes": [route]}]}]}


def _split(text: str, option: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found["port"]) < 65536:
        raise exits.Failure(
            exits.USAGE, f"{option} {text!r} is no address; write HOST:PORT or :PORT, for example 127.0.0.1:3000"
        )
    return found["host"], int(found["port"])


def _write(path: Path, content: str) -> None:
    """For this user alone; at once, so that a proxy that watches it never reads a half."""
    new = path.with_suffix(f".{os.getpid()}")
    new.touch(0o600)
    new.write_text(content)
    new.replace(path)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("gatewright proxy", add_help=False, allow_abbrev=False)
    parser.add_argument("--from", dest="source", metavar="ADDRESS")
    parser.add_argument("--to", dest="target", metavar="ADDRESS")
    return parser
