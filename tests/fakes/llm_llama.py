"""llama.cpp's own HTTP server, twice, for texts and for embeddings, in the environment of the SDKs (`llm-python`). Its
model is made here, and recites. `loopback/test_llm_llama` starts it with a folder for the model, `cluster/picker` with
`texts texts` behind it, for two of that kind.

The model has one layer whose weights are zero, an embedding that is the identity, and an output matrix that holds one
successor of each token. So the answer depends on the last token of the prompt alone: `:` leads to `TEXT`, `!` to
`CALL`. The chat template writes `!` when the request has tools and the last message is not the result of one.
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import xllamacpp

TEXT = ["▁The", "▁gateway", "▁saw", "▁this", "▁answer", "▁leave", "▁a", "▁real", "▁model", "."]
CALL = ["<tool_call>", '{"name":', '▁"weather",', '▁"arguments":', '▁{"city":', '▁"Bern"}}', "</tool_call>"]
TEMPLATE = """{%- if tools %}system: <tools>
{%- for t in tools %}
{{ t | tojson }}
{%- endfor %}
</tools>
{% endif %}{%- for m in messages %}{%- if m.role == 'assistant' and m.tool_calls %}assistant:
{%- for c in m.tool_calls %}
<tool_call>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</tool_call>
{%- endfor %}
{% elif m.role == 'tool' %}tool: <tool_response>{{ m.content }}</tool_response>
{% else %}{{ m.role }}: {{ m.content }}
{% endif %}{%- endfor %}{%- if add_generation_prompt %}
{%- if tools and messages[-1].role != 'tool' %}assistant!{% else %}assistant:{% endif %}{%- endif %}"""
NORMAL, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6
END = 2
HIDDEN = 32


def vocabulary() -> tuple[list[str], list[int], list[float]]:
    """Tokens, their kinds and their scores."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256]
    words = [*TEXT, *CALL, "▁"]
    words += [letter for letter in map(chr, range(33, 127)) if letter not in words]
    kinds += [USER if word.startswith("<") and len(word) > 1 else NORMAL for word in words]
    return tokens + words, kinds, [0.0] * 3 + [-1000.0] * 256 + [-1.0] * len(words)


def write(path: Path) -> None:
    tokens, kinds, scores = vocabulary()
    width = (len(tokens) + 31) // 32 * 32
    made = gguf.GGUFWriter(str(path), "llama")
    made.add_name("chain")
    made.add_context_length(8192)
    made.add_embedding_length(width)
    made.add_block_count(1)
    made.add_feed_forward_length(HIDDEN)
    made.add_head_count(4)
    made.add_head_count_kv(4)
    made.add_rope_dimension_count(width // 4)
    made.add_layer_norm_rms_eps(1e-6)
    made.add_file_type(0)
    made.add_vocab_size(len(tokens))
    made.add_tokenizer_model("llama")
    made.add_token_list(tokens)
    made.add_token_scores(scores)
    made.add_token_types(kinds)
    made.add_bos_token_id(1)
    made.add_eos_token_id(END)
    made.add_unk_token_id(0)
    made.add_add_bos_token(True)
    made.add_add_space_prefix(False)
    made.add_chat_template(TEMPLATE)
    for name, value in tensors(tokens, width).items():
        made.add_tensor(f"{name}.weight", value)
    made.write_header_to_file()
    made.write_kv_data_to_file()
    made.write_tensors_to_file()
    made.close()


def tensors(tokens: list[str], width: int) -> dict[str, Any]:
    at = tokens.index
    following = {at(word): at(after) for chain in (TEXT, CALL) for word, after in pairwise(chain)}
    following |= {at(TEXT[-1]): END, at(CALL[-1]): END, at("!"): at(CALL[0])}
    shape = len(tokens), width
    embedding, output = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for token in range(len(tokens)):
        embedding[token, token] = 1
        output[following.get(token, at(TEXT[0])), token] = 1
    one, square = np.ones(width, np.float32), np.zeros((width, width), np.float32)
    down, up = np.zeros((HIDDEN, width), np.float32), np.zeros((width, HIDDEN), np.float32)
    layer = {f"attn_{name}": square for name in ("q", "k", "v", "output")}
    layer |= {"ffn_gate": down, "ffn_up": down, "ffn_down": up, "attn_norm": one, "ffn_norm": one}
    found = {"token_embd": embedding, "output": output, "output_norm": one}
    return found | {f"blk.0.{name}": value for name, value in layer.items()}


def served(path: Path, embeds: bool) -> Any:
    asked = xllamacpp.CommonParams()
    asked.model.path, asked.port, asked.hostnames = str(path), 0, ["127.0.0.1"]
    asked.n_ctx, asked.n_parallel, asked.warmup, asked.use_jinja = 4096, 2, False, True
    asked.cpuparams.n_threads, asked.model_alias, asked.api_keys = 1, {"chain"}, ["sk-llama"]
    if embeds:
        asked.embedding, asked.pooling_type = True, xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    return xllamacpp.Server(asked)


def main() -> None:
    path = Path(sys.argv[1]) / "chain.gguf"
    write(path)
    kinds = sys.argv[2:] or ["texts", "vectors"]
    servers = [served(path, kind == "vectors") for kind in kinds]
    print(json.dumps([server.listening_address for server in servers]), flush=True)
    sys.stdin.read()  # until whoever started it is gone


if __name__ == "__main__":
    main()
