"""Rows of the table for traffic of agents: LLM, MCP, A2A. Read by `table` alone."""

from __future__ import annotations

from typing import Final

from gatewright.variables.variable import (
    BOOL,
    CLOSED,
    DOUBLE,
    DURATION,
    DYN,
    FREE,
    INT,
    STRING,
    Variable,
    list_of,
)

_COUNTS: Final = (
    ("inputTokens", "Tokens of the request."),
    ("providerInputTokens", "Tokens of the request as the provider counts them."),
    ("inputImageTokens", "Of these, tokens of images."),
    ("inputTextTokens", "Of these, tokens of text."),
    ("inputAudioTokens", "Of these, tokens of sound."),
    ("cachedInputTokens", "Of these, tokens read from the provider's cache."),
    ("cacheCreationInputTokens", "Tokens written to the provider's cache."),
    ("outputTokens", "Tokens of the response."),
    ("outputImageTokens", "Of these, tokens of images."),
    ("outputTextTokens", "Of these, tokens of text."),
    ("outputAudioTokens", "Of these, tokens of sound."),
    ("reasoningTokens", "Of these, tokens of reasoning."),
    ("totalTokens", "Tokens of request and response."),
    ("providerTotalTokens", "Tokens of both as the provider counts them."),
    ("countTokens", "The answer to a request to count tokens."),
)
_PARAMS: Final = (
    ("temperature", DOUBLE),
    ("top_p", DOUBLE),
    ("frequency_penalty", DOUBLE),
    ("presence_penalty", DOUBLE),
    ("seed", INT),
    ("max_tokens", INT),
    ("encoding_format", STRING),
    ("dimensions", INT),
)
_COSTS: Final = ("total", "input", "output", "cacheRead", "cacheWrite", "reasoning", "inputAudio", "outputAudio")

LLM: Final = (
    Variable("llm", CLOSED, "request", "The call of an LLM, of a backend of type `ai`.", maybe=True),
    Variable("llm.streaming", BOOL, "request", "Whether the response is to be streamed.", maybe=True),
    Variable("llm.requestModel", STRING, "request", "The model that the request names.", maybe=True),
    Variable("llm.provider", STRING, "request", "The provider.", maybe=True),
    Variable("llm.prompt", list_of(FREE), "request", "The messages, each with `role` and `content`.", maybe=True),
    Variable("llm.params", CLOSED, "request", "Parameters of the request.", maybe=True),
    *(
        Variable(f"llm.params.{name}", kind, "request", f"The request's `{name}`.", maybe=True)
        for name, kind in _PARAMS
    ),
    Variable("llm.responseModel", STRING, "response", "The model that has answered.", maybe=True),
    *(Variable(f"llm.{name}", INT, "response", doc, maybe=True) for name, doc in _COUNTS),
    Variable("llm.serviceTier", STRING, "response", "The provider's tier of service.", maybe=True),
    Variable("llm.completion", list_of(STRING), "response", "The answers as text.", maybe=True),
    Variable(
        "llm.toolCalls",
        list_of(FREE),
        "response",
        "The tools that the answer calls, each with `id`, `name` and `arguments`.",
        maybe=True,
    ),
    Variable("llm.timeToFirstToken", DURATION, "response", "From the call to the first token.", maybe=True),
    Variable("llm.timePerOutputToken", DURATION, "end", "Between two tokens of the answer, on average.", maybe=True),
    Variable("llm.cost", CLOSED, "response", "What the call cost, in USD.", maybe=True),
    *(Variable(f"llm.cost.{name}", DOUBLE, "response", f"The cost: {name}.", maybe=True) for name in _COSTS),
    Variable("llm.costRates", CLOSED, "response", "What a million tokens cost, in USD.", maybe=True),
    *(Variable(f"llm.costRates.{name}", DOUBLE, "response", f"The rate: {name}.", maybe=True) for name in _COSTS),
    Variable("llmRequest", FREE, "request", "The body of the request to an LLM, while its policies run; else empty."),
)

MCP: Final = (
    Variable("mcp", CLOSED, "request", "The MCP call, of a backend of type `mcp`.", maybe=True),
    Variable("mcp.methodName", STRING, "request", "The JSON-RPC method, such as `tools/call`.", maybe=True),
    Variable("mcp.sessionId", STRING, "request", "The session.", maybe=True),
    Variable("mcp.tool", CLOSED, "request", "The tool that is called, or is in question for a list.", maybe=True),
    Variable("mcp.tool.target", STRING, "request", "The MCP target that has it.", maybe=True),
    Variable("mcp.tool.name", STRING, "request", "Its name, as the target calls it.", maybe=True),
    Variable("mcp.tool.arguments", FREE, "request", "The arguments of a call; none while it is listed.", maybe=True),
    Variable("mcp.tool.result", DYN, "response", "The result of a call.", maybe=True),
    Variable("mcp.tool.error", DYN, "response", "The error of a call.", maybe=True),
    Variable("mcp.prompt", CLOSED, "request", "The prompt that is asked for.", maybe=True),
    Variable("mcp.prompt.target", STRING, "request", "The MCP target that has it.", maybe=True),
    Variable("mcp.prompt.name", STRING, "request", "Its name.", maybe=True),
    Variable("mcp.resource", CLOSED, "request", "The resource that is asked for.", maybe=True),
    Variable("mcp.resource.target", STRING, "request", "The MCP target that has it.", maybe=True),
    Variable("mcp.resource.name", STRING, "request", "Its URI.", maybe=True),
    Variable("mcp.task", CLOSED, "request", "The task that is asked for.", maybe=True),
    Variable("mcp.task.target", STRING, "request", "The MCP target that has it.", maybe=True),
    Variable("mcp.task.id", STRING, "request", "Its id.", maybe=True),
)

A2A: Final = (
    Variable("a2a", CLOSED, "request", "The call of an A2A agent, of a backend of type `a2a`.", maybe=True),
    Variable(
        "a2a.method",
        STRING,
        "request",
        "The method, such as `message/send`: one name in all versions and bindings (docs/a2a.md).",
        maybe=True,
    ),
    Variable("a2a.binding", STRING, "request", "How the call is made: `JSONRPC`, `HTTP+JSON` or `GRPC`.", maybe=True),
    Variable(
        "a2a.skill", STRING, "request", "The skill that the message names: `skillId` in its metadata.", maybe=True
    ),
    Variable("a2a.contextId", STRING, "request", "The context that the message belongs to.", maybe=True),
    Variable("a2a.task", CLOSED, "request", "The task that the call is about.", maybe=True),
    Variable(
        "a2a.task.id", STRING, "request", "Its id; at the end also that of a task that the agent made.", maybe=True
    ),
    Variable(
        "a2a.task.state", STRING, "end", "Its state as the agent reported it last, such as `completed`.", maybe=True
    ),
    Variable("a2a.errorCode", INT, "end", "The code of a JSON-RPC error that the agent answered with.", maybe=True),
)
