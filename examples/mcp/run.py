"""Both servers and the proxy of this example, until Ctrl-C: `python examples/mcp/run.py`."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SERVER = str(HERE / "server.py")


def main() -> None:
    commands = (
        [SERVER, "19501", "files", "read,drop"],
        [SERVER, "19502", "search", "find"],
        ["-m", "dataplane", "-f", str(HERE / "config.yaml"), *sys.argv[1:]],
    )
    children = [subprocess.Popen([sys.executable, *command]) for command in commands]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, so that the children end too
    try:
        children[-1].wait()
    except KeyboardInterrupt:
        pass
    finally:
        for child in children:
            child.terminate()
            child.wait()


if __name__ == "__main__":
    main()
