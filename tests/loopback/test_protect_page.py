"""`docs/protect-an-api.md`, word by word: its commands make the folder, and each row of its table is answered so."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.fakes.up_process import EXAMPLES, running
from tests.harness.patience import PATIENCE
from tests.loopback.test_example_commands import ONE, shell
from tests.rules import page_commands

ROOT = EXAMPLES.parent
PAGE = ROOT / "docs/protect-an-api.md"
PORT = 8443


@pytest.mark.needs("curl")
def test_the_folder_of_the_page_answers_as_its_table_says(tmp_path: Path) -> None:
    texts = [command.text.partition("#")[0].strip() for command in page_commands.commands(PAGE) if command.is_block]
    made = [text for text in texts if text.startswith(("gatewright init", "cp"))]
    assert len(made) == 3
    printed = "\n".join(shell(text, tmp_path, {}) for text in made)
    (token,) = re.findall(r"Bearer ([\w.-]+)", printed)
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "api/protect.yaml").write_text(block)
    assert "0 errors" in shell("gatewright lint api", tmp_path, {})
    (extracted,) = [text for text in texts if text.startswith("sed")]
    shell(extracted, tmp_path, {})
    trusting = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    with running(tmp_path / "api", tmp_path, *ONE, listeners=(PORT,)) as started:
        started.wait_ready()
        assert started.cli("wait", "--timeout", f"{PATIENCE:.0f}s").returncode == 0
        address = f"https://localhost:{PORT + started.offset}/"

        def ask(method: str = "GET", **headers: str) -> tuple[int, dict[str, str]]:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            try:
                with urlopen(Request(address, method=method, headers=named), context=trusting) as answer:
                    return answer.status, {name.lower(): value for name, value in answer.headers.items()}
            except HTTPError as error:
                with error:
                    return error.code, {name.lower(): value for name, value in error.headers.items()}

        curls = [text for text in texts if text.startswith("curl")]
        moved = {f":{PORT}": f":{PORT + started.offset}", "$TOKEN": token}
        assert [re.findall(r"^HTTP/\S+ (\d+)", shell(text, tmp_path, moved), re.MULTILINE) for text in curls] == [
            ["401"],
            ["200"],
        ]
        known = {"Authorization": f"Bearer {token}"}
        preflight = {"Access_Control_Request_Method": "GET", "Access_Control_Request_Headers": "authorization"}
        status, headers = ask("OPTIONS", Origin="https://app.example", **preflight)
        assert (status, headers.get("access-control-allow-origin")) == (204, "https://app.example")
        assert "access-control-allow-origin" not in ask("OPTIONS", Origin="https://other.example", **preflight)[1]
        assert [ask(**known)[0] for _ in range(9)] == [200] * 9
        status, headers = ask(**known)
        assert status == 429 and headers["retry-after"]
