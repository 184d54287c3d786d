"""Tasks of the reference server "everything", asked by the official SDK: begun, looked at, listed, their result with
what the server asks of its client meanwhile, cancelled. The same direct and through the proxy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, types

from tests.harness.patience import PATIENCE
from tests.harness.waiting import until
from tests.loopback.test_mcp_peers import world
from tests.loopback.test_mcp_sdk import client

pytestmark = [pytest.mark.slow, pytest.mark.needs("mcp-server-everything")]

RELATED = "io.modelcontextprotocol/related-task"


async def offers(asking: Client, name: str) -> bool:
    return name in {tool.name for tool in (await asking.list_tools()).tools}


async def begun(asking: Client, tool: str, **arguments: Any) -> types.Task:
    """A call that the server makes a task of."""
    params = types.CallToolRequestParams(name=tool, arguments=arguments, task=types.TaskMetadata(ttl=60_000))
    # The session takes no task for a result of `tools/call`; what is beneath it takes what comes.
    shown = params.model_dump(by_alias=True, exclude_none=True)
    raw = await asking.session._dispatcher.send_raw_request("tools/call", shown, {"timeout": PATIENCE})
    return types.CreateTaskResult.model_validate(raw, by_name=False).task


async def looked_at(asking: Client, task: str) -> types.GetTaskResult:
    request = types.GetTaskRequest(params=types.GetTaskRequestParams(task_id=task))
    return await asking.session.send_request(request, types.GetTaskResult)


async def result_of(asking: Client, task: str) -> types.CallToolResult:
    request = types.GetTaskPayloadRequest(params=types.GetTaskPayloadRequestParams(task_id=task))
    return await asking.session.send_request(request, types.CallToolResult)


async def seen(asking: Client, prefix: str) -> list[Any]:
    """What a client sees of two tasks, but for their ids."""
    tool = f"{prefix}simulate-research-query"
    await until(partial(offers, asking, tool), "the tool that is a task")
    found: list[Any] = []
    first = await begun(asking, tool, topic="python", ambiguous=True)
    second = await begun(asking, tool, topic="rust")
    found += [first.status, first.task_id == second.task_id]
    listed = await asking.session.send_request(types.ListTasksRequest(), types.ListTasksResult)
    found.append({first.task_id, second.task_id} <= {task.task_id for task in listed.tasks})
    cancel = types.CancelTaskRequest(params=types.CancelTaskRequestParams(task_id=second.task_id))
    found.append((await asking.session.send_request(cancel, types.CancelTaskResult)).status)
    found.append((await looked_at(asking, second.task_id)).status)
    result = await result_of(asking, first.task_id)  # it waits for the end, and brings what is asked of the client
    found.append(result.content[0].text)  # type: ignore[union-attr]
    assert result.meta is not None
    found.append(result.meta[RELATED]["taskId"] == first.task_id)
    ended = await looked_at(asking, first.task_id)
    found += [ended.status, ended.task_id == first.task_id]
    with pytest.raises(MCPError):
        await looked_at(asking, first.task_id + "0")
    return found


async def test_tasks_are_the_same_direct_and_through_the_proxy(tmp_path: Path, tool: Callable[[str], str]) -> None:
    async with world(tmp_path, tool) as here:
        found = []
        routes = {here.direct: "", here.through("http"): "", here.through("stdio"): "", here.through("both"): "b_"}
        for url, prefix in routes.items():
            async with client(url, "legacy") as asking:
                found.append(await seen(asking, prefix))
        direct, *through = found
        assert direct[:5] == ["working", False, True, "cancelled", "cancelled"]
        assert "python" in direct[5] and direct[6:] == [True, "completed", True]
        assert "unavailable" not in direct[5], "the client was asked what is meant"
        assert through == [direct] * 3
