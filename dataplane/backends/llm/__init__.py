"""LLM providers behind one backend: what acts on `dataplane/llm`."""
