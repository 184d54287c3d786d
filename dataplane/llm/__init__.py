"""APIs of LLM providers without I/O: which API a request calls, what policies make of its body, where providers are,
what answers cost in tokens, and errors in the shape that each API's clients read. What acts on it is `backends/llm`."""
