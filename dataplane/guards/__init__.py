"""What texts may say: patterns that are masked or rejected, and servers that judge. Knows no format of LLMs."""
