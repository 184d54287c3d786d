"""What the fields of a request say. A new field of the API needs a row: until it has one it is refused where it would
be translated."""

from __future__ import annotations

from typing import Final

from dataplane.llm.features import Feature as F
from dataplane.llm.formats.contract import Shapes

_TEXT: Final = {"type": F.CORE, "text": F.CORE, "prompt_cache_breakpoint": F.CACHE}
_MESSAGE: Final = {"role": F.CORE, "content": F.CORE, "name": F.NAME}
_FUNCTION: Final = {"type": F.CORE, "function": F.CORE}

SHAPES: Final = Shapes(
    fields={
        "": {
            "model": F.CORE,
            "messages": F.CORE,
            "stream": F.CORE,
            "stream_options": F.CORE,
            "max_tokens": F.CORE,
            "max_completion_tokens": F.CORE,
            "tools": F.CORE,
            "tool_choice": F.CORE,
            "functions": F.CORE,
            "function_call": F.CORE,
            "response_format": F.CORE,
            "temperature": F.TEMPERATURE,
            "top_p": F.TOP_P,
            "stop": F.STOP,
            "seed": F.SEED,
            "frequency_penalty": F.FREQUENCY,
            "presence_penalty": F.PRESENCE,
            "n": F.CHOICES,
            "logprobs": F.LOGPROBS,
            "top_logprobs": F.LOGPROBS,
            "logit_bias": F.LOGIT_BIAS,
            "prediction": F.PREDICTION,
            "parallel_tool_calls": F.PARALLEL,
            "reasoning_effort": F.REASONING,
            "verbosity": F.VERBOSITY,
            "audio": F.MODALITIES,
            "modalities": F.MODALITIES,
            "user": F.USER,
            "safety_identifier": F.USER,
            "metadata": F.METADATA,
            "service_tier": F.TIER,
            "store": F.STORE,
            "prompt_cache_key": F.CACHE_SETTINGS,
            "prompt_cache_options": F.CACHE_SETTINGS,
            "prompt_cache_retention": F.CACHE_SETTINGS,
            "moderation": F.MODERATION,
            "web_search_options": F.SERVER_TOOL,
        },
        "stream_options": {"include_usage": F.CORE, "include_obfuscation": F.OBFUSCATION},
        "messages[developer]": _MESSAGE,
        "messages[system]": _MESSAGE,
        "messages[user]": _MESSAGE,
        "messages[assistant]": {
            "role": F.CORE,
            "content": F.CORE,
            "tool_calls": F.CORE,
            "function_call": F.CORE,
            "refusal": F.CORE,
            "name": F.NAME,
            "audio": F.AUDIO_REPLAYED,
            "reasoning_content": F.THINKING,
            "annotations": F.CITED,
        },
        "messages[tool]": {"role": F.CORE, "content": F.CORE, "tool_call_id": F.CORE},
        "messages[function]": {"role": F.CORE, "content": F.CORE, "name": F.CORE},
        "content[text]": _TEXT,
        "content[refusal]": {"type": F.CORE, "refusal": F.CORE},
        "content[image_url]": {"type": F.CORE, "image_url": F.CORE, "prompt_cache_breakpoint": F.CACHE},
        "image_url": {"url": F.CORE, "detail": F.DETAIL},
        "content[input_audio]": {"type": F.CORE, "input_audio": F.AUDIO, "prompt_cache_breakpoint": F.CACHE},
        "content[file]": {"type": F.CORE, "file": F.CORE, "prompt_cache_breakpoint": F.CACHE},
        "file": {"file_data": F.DOCUMENT, "file_id": F.FILE_ID, "filename": F.CORE},
        "tool_calls[function]": {"id": F.CORE, **_FUNCTION, "index": F.CORE},
        "tools[function]": _FUNCTION,
        "function": {
            "name": F.CORE,
            "arguments": F.CORE,
            "description": F.CORE,
            "parameters": F.CORE,
            "strict": F.STRICT,
        },
        "functions": {"name": F.CORE, "description": F.CORE, "parameters": F.CORE},
        "function_call": {"name": F.CORE, "arguments": F.CORE},
        "tool_choice[function]": _FUNCTION,
        "response_format[text]": {"type": F.CORE},
        "response_format[json_object]": {"type": F.JSON_OBJECT},
        "response_format[json_schema]": {"type": F.SCHEMA, "json_schema": F.CORE},
        "json_schema": {
            "schema": F.CORE,
            "name": F.SCHEMA_EXTRA,
            "description": F.SCHEMA_EXTRA,
            "strict": F.SCHEMA_EXTRA,
        },
    },
    whole={
        "tools[custom]": F.CUSTOM_TOOL,
        "tool_calls[custom]": F.CUSTOM_TOOL,
        "tool_choice[custom]": F.CUSTOM_TOOL,
        "tool_choice[allowed_tools]": F.ALLOWED_TOOLS,
    },
)
QUIET: Final = {
    "n": 1,
    "logprobs": False,
    "top_logprobs": 0,
    "store": False,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "modalities": ["text"],
    "service_tier": "auto",
    "parallel_tool_calls": True,
    "strict": False,
    "detail": "auto",
}
"""Values that ask for what is so anyway."""
