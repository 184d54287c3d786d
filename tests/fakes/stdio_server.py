"""An MCP server on standard input and output, run as a program: Python alone, so that it starts at once. Its tools do
what their names say, also what no server should do.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

KEPT: dict[str, Any] = {}


def send(message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def note(method: str, **params: Any) -> None:
    send({"method": method, "params": params})


def forked(_: Any) -> str:
    """The process id of a child that outlives whoever does not end the group."""
    return str(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"]).pid)


def crashes(_: Any) -> str:
    os._exit(3)


def writes_without_end(_: Any) -> str:
    while True:
        sys.stdout.write("x" * 65_536)


def says_much(arguments: Any) -> str:
    return "x" * int(arguments["size"])


def says_nonsense(_: Any) -> str:
    while True:
        sys.stdout.write("this is no message\n")


def never_answers(_: Any) -> str:
    time.sleep(3600)
    return ""


def closes_its_input(_: Any) -> str:
    os.close(0)
    time.sleep(3600)
    return ""


def complains(arguments: Any) -> str:
    for line in range(arguments["lines"]):
        sys.stderr.write(f"complaint {line} {'y' * 3000}\n")
    sys.stderr.flush()
    return "done"


def notifies_without_end(arguments: Any) -> str:
    for number in range(arguments["count"]):
        note("notifications/message", level="info", data=number)
    return "done"


TOOLS = {
    "add": lambda arguments: str(arguments["a"] + arguments["b"]),
    "pid": lambda _: str(os.getpid()),
    "variable": lambda arguments: os.environ.get(arguments["name"], "(unset)"),
    "keep": lambda arguments: str(KEPT.setdefault("value", arguments["value"])),
    "arguments": lambda _: json.dumps(sys.argv[1:]),
    **{each.__name__: each for each in (forked, crashes, writes_without_end, says_nonsense, says_much, never_answers)},
    **{each.__name__: each for each in (closes_its_input, complains, notifies_without_end)},
}


def result(message: Any) -> Any:
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        info = {"name": "stdio", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": TOOLS[params["name"]](params.get("arguments", {}))}]}
    return {}


def main() -> None:
    if "--dies" in sys.argv:
        sys.exit(7)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            send({"id": message["id"], "result": result(message)})


if __name__ == "__main__":
    main()
