"""The agent and the proxy of this example, until Ctrl-C: `python examples/a2a/run.py`."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    commands = ([str(HERE / "agent.py"), "19400"], ["-m", "dataplane", "-f", str(HERE / "config.yaml"), *sys.argv[1:]])
    children = [subprocess.Popen([sys.executable, *command]) for command in commands]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, so that the children end too
    try:
        children[1].wait()
    except KeyboardInterrupt:
        pass
    finally:
        for child in children:
            child.terminate()
            child.wait()


if __name__ == "__main__":
    main()
