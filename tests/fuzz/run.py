"""Coverage-guided fuzzing of framing, stream translators and classification: ``./dev fuzz [SECONDS]``.

Needs the extra ``fuzz`` (atheris). The corpus starts with the field cases and grows in a folder of its own,
which is kept between runs. A failing input is written to ``tests/recorded/fuzz``; commit it together with the
fix.
"""

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["lockstitch"]):
    from target import RECORDED, check, seeds

WORK = Path(__file__).parents[2] / ".fuzz"
CORPUS = WORK / "corpus"
DICTIONARY = WORK / "tokens"
INPUT_MAX = 4096
SECONDS = 30
TOKENS = (
    *(
        "data: ",
        "event: ",
        "\n\n",
        "\r\n",
        "[DONE]",
        '{"choices":[{"delta":{',
        '"tool_calls":[{"index":',
        '"id":"',
    ),
    *(
        '"function":{"name":"',
        '"arguments":"',
        '"content":"',
        '"reasoning":"',
        '"finish_reason":"',
        '"usage":{',
    ),
    *(
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "<｜DSML｜invoke",
        "<|tool_call_begin|>",
        "```",
        "null",
    ),
    *(
        '"type":"content_block_delta"',
        '"type":"response.output_item.done"',
        '"functionCall":',
        '"error":{',
        "\\ud800",
    ),
)
"""What a fuzzer would take long to come upon: the words of the protocols."""


def main(seconds: int) -> None:
    CORPUS.mkdir(parents=True, exist_ok=True)
    escaped = ("".join(f"\\x{byte:02x}" for byte in token.encode()) for token in TOKENS)
    DICTIONARY.write_text("".join(f'"{token}"\n' for token in escaped), encoding="ascii")
    for name, data in seeds():
        (CORPUS / name).write_bytes(data)
    findings = RECORDED / "fuzz"
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={INPUT_MAX}",
        f"-artifact_prefix={findings}/",
        f"-dict={DICTIONARY}",
        "-timeout=10",
        "-rss_limit_mb=1024",
        "-verbosity=0",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(CORPUS)], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS)
