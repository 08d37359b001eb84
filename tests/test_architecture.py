"""The import rules of the layout, read from the source text; nothing of the package is imported here.

Each check is a function from a source tree to complaints, so that it can be shown to fail on a small tree
with one fault in it. Complaints name file, line, what is wrong and what to do.
"""

import ast
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGE = REPOSITORY / "src" / "lockstitch"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("schema",),
    ("wire",),
    ("providers",),
    ("history",),
    ("session", "llm", "tools"),
    ("agent",),
    ("testing",),
    ("cli",),
)
"""A package imports from itself and from lines above its own; packages of one line not from each other."""

RANK = {package: rank for rank, packages in enumerate(LAYERS) for package in packages}

FACADE_RANK = RANK["agent"]
"""`lockstitch` itself re-exports everything up to the agent, so only what lies below may import from it."""

PURE = (
    "schema/",
    "wire/",
    "providers/",
    "history/",
    "session/gate.py",
    "session/scan.py",
    "session/closers.py",
    "llm/retry.py",
    "agent/machine.py",
)
"""Modules and whole packages that decide without acting: time, ids and bytes come in as arguments.

What they import of the package has to be pure with them, and so does a module that says "(pure)" of itself.
"""

IMPURE_IMPORTS = (
    *("asyncio", "anyio", "trio", "concurrent", "threading", "multiprocessing", "subprocess", "signal"),
    *("socket", "ssl", "select", "selectors", "http", "urllib.request", "aiohttp", "httpx", "requests"),
    *("time", "random", "uuid", "secrets"),
    # pathlib too: a path is a promise that somebody opens it. Packaged data comes from importlib.resources.
    *("os", "pathlib", "tempfile", "shutil", "glob", "fcntl", "sqlite3", "apsw"),
)

IMPURE_CALLS = ("open", "input", "print")
CLOCKS = ("datetime.now", "datetime.utcnow", "datetime.today", "date.today")

VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"})

HEAVY = (
    *("aiohttp", "httpx", "requests", "urllib3", "openai", "anthropic", "pydantic"),
    *("rich", "prompt_toolkit", "textual", "sqlite3", "apsw", "genai_prices", "keyring"),
)


class Import(NamedTuple):
    line: int
    target: str
    """Dotted and absolute; for `from a import b` it is `a.b`, whether b is a module or a name in one."""


def modules(root: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Every module below root with its syntax tree, in a fixed order."""
    for path in sorted(root.rglob("*.py")):
        yield path, ast.parse(path.read_bytes(), filename=str(path))


def imports(path: Path, tree: ast.Module, root: Path) -> Iterator[Import]:
    """All imports of a module, those inside functions and under TYPE_CHECKING included.

    Calls of `import_module` and `__import__` with a literal name count too.
    """
    package = (root.name, *path.relative_to(root).parent.parts)
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (Import(node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                start = package[: len(package) - level + 1] if level else ()
                origin = ".".join((*start, *([module] if module else [])))
                yield from (Import(node.lineno, f"{origin}.{alias.name}") for alias in names)
            case ast.Call(func=func, args=[ast.Constant(value=str(name)), *_]):
                if ast.unparse(func) in ("import_module", "importlib.import_module", "__import__"):
                    start = ".".join(package) if name.startswith(".") else ""
                    yield Import(node.lineno, start + name)


def within(name: str, prefixes: tuple[str, ...]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


def direction_complaints(root: Path) -> list[str]:
    """Imports against the order of LAYERS, and packages that LAYERS does not know."""
    complaints = []
    for path, tree in modules(root):
        where = path.relative_to(root)
        if len(where.parts) == 1:
            continue  # lockstitch/__init__.py and its like stand above all layers
        own = where.parts[0]
        if own not in RANK:
            complaints.append(f"{where}: package {own} has no place in LAYERS; give it one")
            continue
        for line, target in imports(path, tree, root):
            head, _, rest = target.partition(".")
            if head != root.name or rest == "__version__":
                continue
            other = rest.partition(".")[0]
            rank = RANK.get(other, FACADE_RANK)
            if other != own and rank >= RANK[own]:
                complaints.append(f"{where}:{line}: {own} imports {target}; imports go only to lower layers")
    return complaints


def pure_modules(root: Path) -> dict[Path, ast.Module]:
    """What is listed in PURE or calls itself pure, and every module of the package that those import."""
    trees = {path.relative_to(root): tree for path, tree in modules(root)}
    waiting = [where for where, tree in trees.items() if _is_listed(where) or _says_pure(tree)]
    found: dict[Path, ast.Module] = {}
    while waiting:
        where = waiting.pop()
        if where not in found:
            found[where] = trees[where]
            for _, target in imports(root / where, trees[where], root):
                if target.startswith(root.name + ".") and (module := _module_of(target, trees)):
                    waiting.append(module)
    return dict(sorted(found.items()))


def _is_listed(where: Path) -> bool:
    name = where.as_posix()
    return any(name.startswith(entry) if entry.endswith("/") else name == entry for entry in PURE)


def _says_pure(tree: ast.Module) -> bool:
    return "(pure)" in (ast.get_docstring(tree) or "").partition("\n\n")[0]


def _module_of(target: str, trees: Mapping[Path, ast.Module]) -> Path | None:
    """The file that `target` names or lies in; None for what is not a module of the package."""
    parts = target.split(".")[1:]
    files = (Path(*parts[:size]).with_suffix(".py") for size in (len(parts), len(parts) - 1) if size > 0)
    return next((file for file in files if file in trees), None)


def purity_complaints(root: Path) -> list[str]:
    """Pure modules, and what those import, that could reach a clock, a socket, a file, a thread or chance."""
    return [
        f"{where}:{line}: pure code uses {name}; take what it gives as an argument"
        for where, tree in pure_modules(root).items()
        for line, name in (*_impure_imports(root / where, tree, root), *_impure_calls(tree))
    ]


def _impure_imports(path: Path, tree: ast.Module, root: Path) -> Iterator[Import]:
    return (found for found in imports(path, tree, root) if within(found.target, IMPURE_IMPORTS))


def _impure_calls(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if name in IMPURE_CALLS or name.endswith(CLOCKS):
                yield node.lineno, name


def circle_complaints(root: Path) -> list[str]:
    """Modules that import each other, directly or by way of others, wherever the imports stand."""
    trees = {path.relative_to(root): tree for path, tree in modules(root)}
    # What the whole package re-exports is above every module, and so is not followed.
    below = {where: tree for where, tree in trees.items() if len(where.parts) > 1}
    graph = {
        where: {
            module
            for _, target in imports(root / where, tree, root)
            if target.startswith(root.name + ".") and (module := _module_of(target, below)) is not None
        }
        for where, tree in below.items()
    }
    reach = {where: _reachable(where, graph) for where in graph}
    circles = {where: sorted(other for other in reach[where] if where in reach[other]) for where in graph}
    return [
        f"{where}: in a circle of imports ({', '.join(map(str, circle))}); hand one what it needs"
        for where, circle in circles.items()
        if circle
    ]


def _reachable(start: Path, graph: Mapping[Path, set[Path]]) -> set[Path]:
    """Where imports lead from ``start``: to itself only by way of a circle."""
    found: set[Path] = set()
    waiting = list(graph[start])
    while waiting:
        where = waiting.pop()
        if where not in found:
            found.add(where)
            waiting += graph[where]
    return found


def docstring_complaints(root: Path) -> list[str]:
    """Modules that do not say what they own."""
    return [
        f"{path.relative_to(root)}: no module docstring; its first line says what the module owns"
        for path, tree in modules(root)
        if not (ast.get_docstring(tree) or "").strip()
    ]


def name_complaints(root: Path) -> list[str]:
    """Modules and packages named for no subject."""
    return [
        f"{path.relative_to(root)}: named {path.stem!r}; name it for what it owns"
        for path in sorted(root.rglob("*"))
        if (path.suffix == ".py" or (path.is_dir() and path.name != "__pycache__"))
        and VAGUE_NAMES & set(path.stem.split("_"))
    ]


Check = Callable[[Path], list[str]]
CHECKS: dict[str, Check] = {
    "imports go only to lower layers": direction_complaints,
    "pure modules reach nothing outside": purity_complaints,
    "no module imports itself by way of others": circle_complaints,
    "every module says what it owns": docstring_complaints,
    "no module is named for nothing": name_complaints,
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS.keys())
def test_the_package_obeys(check: Check) -> None:
    assert check(PACKAGE) == []


DOC = '"""What it owns."""\n'
FAULTS: dict[str, tuple[Check, str, str, str]] = {
    "a lower layer imports a higher one": (
        direction_complaints,
        "wire/sse.py",
        DOC + "from ..agent import api",
        "wire/sse.py:2: wire imports lockstitch.agent.api",
    ),
    "an absolute import is seen": (
        direction_complaints,
        "wire/sse.py",
        DOC + "import lockstitch.providers.catalog",
        "wire/sse.py:2: wire imports lockstitch.providers.catalog",
    ),
    "packages of one line import each other": (
        direction_complaints,
        "llm/runtime.py",
        DOC + "from ..session.gate import refusal",
        "llm/runtime.py:2: llm imports lockstitch.session.gate.refusal",
    ),
    "an import inside a function is seen": (
        direction_complaints,
        "history/project.py",
        DOC + "def f():\n    from ..tools import run\n",
        "history/project.py:3: history imports lockstitch.tools.run",
    ),
    "an import for types only is seen": (
        direction_complaints,
        "schema/blocks.py",
        DOC + "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..wire import sse\n",
        "schema/blocks.py:4: schema imports lockstitch.wire.sse",
    ),
    "an import by literal name is seen": (
        direction_complaints,
        "wire/sse.py",
        DOC + "import importlib\nimportlib.import_module('lockstitch.cli.main')",
        "wire/sse.py:3: wire imports lockstitch.cli.main",
    ),
    "a layer imports what the whole package re-exports": (
        direction_complaints,
        "tools/run.py",
        DOC + "from lockstitch import Agent",
        "tools/run.py:2: tools imports lockstitch.Agent",
    ),
    "a package without a place is seen": (
        direction_complaints,
        "magic/wand.py",
        DOC,
        "magic/wand.py: package magic has no place",
    ),
    "a pure module reads the clock": (
        purity_complaints,
        "history/tokens.py",
        DOC + "import time",
        "history/tokens.py:2: pure code uses time;",
    ),
    "a pure module reads the clock in a function": (
        purity_complaints,
        "session/gate.py",
        DOC + "def f():\n    from time import monotonic\n",
        "session/gate.py:3: pure code uses time.monotonic;",
    ),
    "a pure module asks datetime for now": (
        purity_complaints,
        "llm/retry.py",
        DOC + "import datetime\nNOW = datetime.datetime.now()",
        "llm/retry.py:3: pure code uses datetime.datetime.now;",
    ),
    "a pure module opens a file": (
        purity_complaints,
        "providers/catalog.py",
        DOC + "TEXT = open('catalog.toml')",
        "providers/catalog.py:2: pure code uses open;",
    ),
    "a pure module imports one that acts": (
        purity_complaints,
        "session/closers.py",
        DOC + "from .file_store import FileStore",
        "session/file_store.py:2: pure code uses os;",
    ),
    "a module that calls itself pure is not": (
        purity_complaints,
        "agent/deltas.py",
        '"""Coalesces text (pure)."""\nimport random',
        "agent/deltas.py:2: pure code uses random;",
    ),
    "a module imports itself": (
        circle_complaints,
        "session/lock.py",
        DOC + "def f():\n    from .lock import f\n",
        "session/lock.py: in a circle of imports (session/lock.py)",
    ),
    "a module without a docstring": (
        docstring_complaints,
        "wire/sse.py",
        "LINE_MAX = 1\n",
        "wire/sse.py: no module docstring",
    ),
    "a module named for nothing": (
        name_complaints,
        "wire/json_utils.py",
        DOC,
        "wire/json_utils.py: named 'json_utils'",
    ),
    "a package named for nothing": (
        name_complaints,
        "common/sse.py",
        DOC,
        "common: named 'common'",
    ),
}


@pytest.mark.parametrize(("check", "file", "text", "complaint"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_found(check: Check, file: str, text: str, complaint: str, tmp_path: Path) -> None:
    root = tmp_path / "lockstitch"
    (root / "session").mkdir(parents=True)
    (root / "__init__.py").write_text(DOC)
    (root / "session" / "__init__.py").write_text(DOC)
    (root / "session" / "file_store.py").write_text(DOC + "import os\n")  # not pure, and need not be
    assert check(root) == []

    (root / file).parent.mkdir(exist_ok=True)
    (root / file).write_text(text)

    assert [found[: len(complaint)] for found in check(root)] == [complaint]


def test_a_circle_of_three_is_told_of_each_and_of_nobody_who_only_leads_to_it(tmp_path: Path) -> None:
    root = tmp_path / "lockstitch" / "session"
    root.mkdir(parents=True)
    follows = {"lock": "scan", "scan": "gate", "gate": "lock", "index": "lock"}
    for name, other in follows.items():
        (root / f"{name}.py").write_text(DOC + f"def f():\n    from .{other} import f\n")
    told = [found.partition(":")[0] for found in circle_complaints(root.parent)]
    assert told == ["session/gate.py", "session/lock.py", "session/scan.py"]


SOUND: dict[str, tuple[str, str]] = {
    "the version may be read anywhere": ("llm/runtime.py", "from lockstitch import __version__"),
    "lower layers may be imported": ("llm/runtime.py", "from ..wire.sse import SseDecoder\nimport asyncio"),
    "siblings in one package may be imported": ("wire/sse.py", "from .strict_json import parse"),
    "dates may be parsed": ("llm/retry.py", "from email.utils import parsedate_to_datetime"),
    "packaged data may be read": ("providers/catalog.py", "from importlib.resources import files"),
    "the command line may use the whole package": ("cli/run.py", "from lockstitch import Agent"),
}


@pytest.mark.parametrize(("file", "text"), SOUND.values(), ids=SOUND.keys())
def test_what_is_allowed_is_not_complained_of(file: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "lockstitch" / file
    path.parent.mkdir(parents=True)
    path.write_text(DOC + text)
    assert [complaint for check in CHECKS.values() for complaint in check(tmp_path / "lockstitch")] == []


def loaded_by(statement: str) -> set[str]:
    """Top-level and dotted names of the modules that a fresh interpreter has after `statement`."""
    program = f"""
import sys
try:
    {statement}
except SystemExit as end:
    assert not end.code, end.code
import json
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


def light_statements() -> dict[str, tuple[str, tuple[str, ...]]]:
    """What must stay light, and what it may not load. The command line may load click: it is one."""
    cases = {"import lockstitch": ("import lockstitch", (*HEAVY, "click"))}
    if (PACKAGE / "cli" / "main.py").exists():
        version = "sys.argv = ['lockstitch', '--version']; from lockstitch.cli.main import main; main()"
        cases["lockstitch --version"] = (version, HEAVY)
        for command in ("--help", "run --help", "chat --help", "config show --help", "models --help"):
            words = ["lockstitch", *command.split()]
            asked = f"import sys; sys.argv = {words}; from lockstitch.cli.main import main; main()"
            cases[f"lockstitch {command}"] = (asked, HEAVY)
    return cases


@pytest.mark.parametrize(("statement", "heavy"), light_statements().values(), ids=light_statements().keys())
def test_starting_loads_nothing_heavy(statement: str, heavy: tuple[str, ...]) -> None:
    assert sorted(loaded_by(statement) & set(heavy)) == []


def test_a_heavy_import_would_be_seen() -> None:
    assert {"sqlite3", "click"} <= loaded_by("import sqlite3, click")
