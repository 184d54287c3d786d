"""Estimates of tokens, beside what tokenizers say."""

from __future__ import annotations

import time

import pytest

from dataplane.llm.estimates import SAMPLE, of_texts, tokens

O200K = {
    # text: tokens of OpenAI's vocabulary `o200k`, as two independent tokenizers count them
    "The gateway reads the usage that a provider reports beside an answer or a stream. Input includes tokens that were"
    " read from and written to the provider's cache, also of Anthropic, which reports those apart.": 41,
    "Die Übertragung größerer Datenmengen über verschlüsselte Verbindungen benötigt außerdem eine sorgfältige"
    " Überwachung der Zertifikate.": 26,
    "Шлюз читает использование, о котором сообщает провайдер, рядом с ответом или потоком.": 22,
    "网关在响应或流旁边读取提供商报告的使用情况。输入包括从提供商的缓存中读取和写入的令牌。": 32,
    "ゲートウェイは、プロバイダーが報告する使用量を応答またはストリームの横で読み取ります。": 31,
    "تقرأ البوابة الاستخدام الذي يبلغ عنه المزود بجانب الإجابة أو التدفق.": 19,
    "def tokens(text: str) -> int:\n    found = 0\n    for piece in _PIECES.findall(text):\n"
    "        found += _of_piece(piece)\n    return found\n": 38,
    '{"id":"chatcmpl-123","object":"chat.completion","created":1700000000,"model":"gpt-4o-2024-08-06","choices":'
    '[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}': 61,
    "3.14159265358979 2.71828182845905 1024 65536 4294967296": 26,
    "Great! 🎉🎉 See you tomorrow 👋🏽 🌍": 15,
    "a" * 400: 50,
}


@pytest.mark.parametrize(("text", "found"), O200K.items(), ids=[text[:12] for text in O200K])
def test_an_estimate_is_within_a_third(text: str, found: int) -> None:
    assert found * 2 / 3 <= tokens(text) <= found * 4 / 3


def test_nothing_is_nothing() -> None:
    assert (tokens(""), of_texts(()), of_texts([""])) == (0, 0, 0)


def test_of_a_long_text_a_sample_is_read() -> None:
    assert tokens("word " * 10_000) == pytest.approx(10_000, rel=0.1)
    assert of_texts(["word " * 10_000, "word " * 10_000]) == pytest.approx(20_000, rel=0.1)
    began = time.thread_time()
    for hostile in ("a" * 10_000_000, "\u4e00" * 10_000_000, "! " * 5_000_000, "\ud800" * 10_000_000):
        tokens(hostile)
    assert time.thread_time() - began < 0.5, SAMPLE
