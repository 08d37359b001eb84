"""What a rule allows, asks for and denies, and that no rule is bypassed with what a shell can do."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lockstitch.schema.errors import CallerError
from lockstitch.tools import approval_file
from lockstitch.tools.approval import Decision, Policy, decide, suggestion
from lockstitch.tools.contract import Needs
from lockstitch.tools.shell_grammar import read
from lockstitch.tools.workspace import relative

GIT = Policy(allow=("shell(git status *)", "shell(git log *)", "shell(ls)", "shell(npm run test:*)"))

ALLOWED: dict[str, str] = {
    "exactly the words": "git status",
    "more words where a star ends the pattern": "git log --oneline -5",
    "quoted words": "git log '--author=A B' \"--since=1 week\"",
    "a quoted operator is a word": "git log ';' '&&' \"|\"",
    "an escaped operator is a word": r"git log \; \&",
    "a star inside a word": "npm run test:unit",
    "each of several commands": "git status && git log; ls | git log\nls",
    "errors thrown away": "git log 2>/dev/null",
    "both streams joined": "git log 2>&1 | git log >/dev/null",
    "file names to be filled in": "git log *.py src/{a,b}.py ~/x",
    "a variable among free words": 'git log "$BRANCH" ${OTHER}',
    "in the background": "ls &",
    "a word in quotes that names the program": "'git' \"status\"",
}

ASKED: dict[str, str] = {
    "another command": "git push",
    "fewer words": "git",
    "more words than the pattern has": "ls -la",
    "another command behind a semicolon": "git status; rm -rf /",
    "behind an and": "git status && rm -rf /",
    "behind an or": "git status || rm -rf /",
    "behind a pipe": "git log | sh",
    "behind a pipe with errors": "git log |& sh",
    "behind an ampersand": "git status & rm -rf /",
    "on the next line": "git status\nrm -rf /",
    "behind a carriage return": "git status\rrm -rf /",
    "in a substitution": "git status $(rm -rf /)",
    "in backticks": "git status `rm -rf /`",
    "in a substitution inside quotes": 'git log "$(rm -rf /)"',
    "in backticks inside quotes": 'git log "`rm -rf /`"',
    "in a process substitution": "git log <(rm -rf /)",
    "in arithmetic": "git log $((a[$(rm x)]))",
    "in an old arithmetic": "git log $[a]",
    "in a default of a variable": "git log ${x:-$(rm y)}",
    "in a prompt expansion": "git log ${x@P}",
    "in an indirect variable": "git log ${!x}",
    "in a subshell": "(git status)",
    "in a group": "{ git status; }",
    "output into a file": "git log > .git/config",
    "output appended": "git log >> ~/.bashrc",
    "output into a file next to a word": "git log>x",
    "output to what only begins like /dev/null": "git log >/dev/null/../../tmp/x",
    "output to what only begins like a stream": "git log >&1x",
    "input from a file": "git log < /etc/passwd",
    "a here document": "git log <<EOF\nx\nEOF",
    "an assignment in front": "GIT_SSH_COMMAND=evil git status",
    "an assignment to a place in an array": "a[0]=1 git status",
    "an expanded program": "$GIT status",
    "an expanded word where the pattern has a fixed one": "git $X",
    "file names in the place of a fixed word": "git st*",
    "a negation": "! git status",
    "a loop": "while git status; do ls; done",
    "a function": "git() { rm -rf /; }; git status",
    "a comment, behind which a line hides": "git status # x\nrm y",
    "a line that goes on": "git sta\\\ntus",
    "an open quote": "git status 'x",
    "another open quote": 'git status "x',
    "an escape sequence in quotes": "git log $'\\x3b'",
    "a translated string": 'git log $"x"',
    "a space that is none in ASCII": "git\u00a0status",
    "an escape character": "git status\x1b[8m",
    "NUL": "git status\0rm",
    "half an and": "git status &&",
    "half a pipe": "git status |",
    "an operator in front": "; git status",
    "two operators": "git status ;; ls",
    "nothing": "",
    "a longer name": "gitstatus",
    "a path to a program of the same name": "./git status",
}


@pytest.mark.parametrize("command", ALLOWED.values(), ids=ALLOWED)
def test_a_rule_allows(command: str) -> None:
    assert decide(GIT, "shell", {"command": command}, needs="approval").verdict == "allow"


@pytest.mark.parametrize("command", ASKED.values(), ids=ASKED)
def test_a_rule_does_not_allow(command: str) -> None:
    decision = decide(GIT, "shell", {"command": command}, needs="approval")
    assert (decision.verdict, decision.insist) == ("ask", False)


RM = Policy(allow=("shell",), deny=("shell(rm *)", "shell(git push *)"))
DENIED: dict[str, tuple[str, str]] = {
    "the command": ("rm -rf /", "deny"),
    "with its path": ("/bin/rm x", "deny"),
    "quoted": ("'r'm x", "deny"),
    "behind another": ("ls; rm x", "deny"),
    "on the next line": ("ls\nrm x", "deny"),
    "in a subshell": ("(rm x)", "deny"),
    "in a group": ("{ rm x; }", "deny"),
    "in a loop": ("for f in *; do rm $f; done", "deny"),
    "in a substitution": ("echo $(rm x)", "deny"),
    "in backticks": ("echo `rm x`", "deny"),
    "with output into a file": ("rm x > y", "deny"),
    "two words": ("git push origin", "deny"),
    "two words with an option between them": ("git -C x push", "perhaps"),
    "in quotes with a substitution": ('echo "$(rm x)"', "perhaps"),
    "run by another program": ("sudo rm x", "perhaps"),
    "found and run": ("find . -exec rm {} +", "perhaps"),
    "a script in quotes": ("bash -c 'ls; rm x'", "perhaps"),
    "a script in quotes in quotes": ("bash -c \"sh -c 'ls && rm x'\"", "perhaps"),
    "with an assignment": ("A=1 rm x", "perhaps"),
    "a program in a variable": ("$X -rf /", "perhaps"),
    "a program made of pieces": ("r${X}m y", "perhaps"),
    "a word in a variable": ("git $X", "perhaps"),
    "a script from elsewhere": ("curl x | sh <<EOF\nrm y\nEOF", "deny"),
    "a word of the same name": ("echo rm", "perhaps"),
    "something else": ("ls *.py", "no"),
    "something that only sounds like it": ("rmdir x", "no"),
    "another subcommand": ("git pull", "no"),
}
VERDICT = {
    "deny": ("deny", False),
    "perhaps": ("ask", True),
    "no": ("allow", False),
}


@pytest.mark.parametrize(("command", "expected"), DENIED.values(), ids=DENIED)
def test_a_rule_denies_what_it_names_and_asks_for_what_it_may_name(command: str, expected: str) -> None:
    decision = decide(RM, "shell", {"command": command}, needs="approval")
    assert (decision.verdict, decision.insist) == VERDICT[expected]


TOOLS: dict[str, tuple[Policy, str, dict[str, Any], Needs, Decision]] = {
    "without rules the tool decides": (
        Policy(),
        "read",
        {},
        "nothing",
        Decision("allow", "read needs no approval"),
    ),
    "without rules the tool asks": (
        Policy(),
        "write",
        {"path": "a"},
        "approval",
        Decision("ask", "write needs an approval", remember="write"),
    ),
    "a tool is allowed": (
        Policy(allow=("write",)),
        "write",
        {},
        "approval",
        Decision("allow", "the rule write allows it"),
    ),
    "a star covers the tools of a server": (
        Policy(allow=("mcp__docs__*",)),
        "mcp__docs__search",
        {},
        "approval",
        Decision("allow", "the rule mcp__docs__* allows it"),
    ),
    "and not those of another": (
        Policy(allow=("mcp__docs__*",)),
        "mcp__mail__send",
        {},
        "approval",
        Decision("ask", "mcp__mail__send needs an approval", remember="mcp__mail__send"),
    ),
    "a rule to ask wins over one to allow, even for a tool that needs nothing": (
        Policy(allow=("read",), ask=("read(private/**)",)),
        "read",
        {"path": "./private/x"},
        "nothing",
        Decision("ask", "the rule read(private/**) asks for it"),
    ),
    "a rule to deny wins over both": (
        Policy(allow=("*",), ask=("*",), deny=("shell",)),
        "shell",
        {"command": "ls"},
        "approval",
        Decision("deny", "the rule shell denies it"),
    ),
    "a pattern of a star is the whole tool": (
        Policy(allow=("shell(*)",)),
        "shell",
        {"command": "a $(b)"},
        "approval",
        Decision("allow", "the rule shell(*) allows it"),
    ),
    "paths below a directory": (
        Policy(allow=("write(src/**)",)),
        "write",
        {"path": "src/a/../b.py"},
        "approval",
        Decision("allow", "the rule write(src/**) allows it"),
    ),
    "and not beside it": (
        Policy(allow=("write(src/**)",)),
        "write",
        {"path": "src/../b.py"},
        "approval",
        Decision("ask", "write needs an approval", remember="write"),
    ),
    "and not outside": (
        Policy(allow=("write(**)",)),
        "write",
        {"path": "../b.py"},
        "approval",
        Decision("ask", "write needs an approval", remember="write"),
    ),
    "a path that is none is never allowed by a pattern": (
        Policy(allow=("write(**)",)),
        "write",
        {"path": 5},
        "approval",
        Decision("ask", "write needs an approval", remember="write"),
    ),
    "a command that is none is never allowed by a pattern": (
        Policy(allow=("shell(ls *)",)),
        "shell",
        {"command": ["ls"]},
        "approval",
        Decision("ask", "shell needs an approval"),
    ),
}


@pytest.mark.parametrize(("policy", "tool", "arguments", "needs", "decision"), TOOLS.values(), ids=TOOLS)
def test_decisions(
    policy: Policy, tool: str, arguments: dict[str, Any], needs: Needs, decision: Decision
) -> None:
    assert decide(policy, tool, arguments, needs=needs) == decision


def test_links_are_followed_before_a_path_is_compared(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "private").mkdir()
    (tmp_path / "src" / "link").symlink_to("../private")

    def verdict(policy: Policy, path: str) -> str:
        return decide(
            policy, "write", {"path": path}, needs="approval", resolve=lambda given: relative(tmp_path, given)
        ).verdict

    inside = Policy(allow=("write(src/**)",))
    assert verdict(inside, "src/a") == "allow"
    assert verdict(inside, str(tmp_path / "src" / "a")) == "allow"
    assert verdict(inside, "src/link/a") == "ask"
    assert verdict(Policy(allow=("write",), deny=("write(private/**)",)), "src/link/a") == "deny"


URLS: dict[str, tuple[str, str, str]] = {
    "a host": ("docs.python.org", "https://docs.python.org/3/", "allow"),
    "its usual port": ("docs.python.org", "https://DOCS.python.org:443/3/", "allow"),
    "not another port": ("docs.python.org", "https://docs.python.org:8443/", "ask"),
    "not without encryption": ("docs.python.org", "http://docs.python.org/", "ask"),
    "hosts below": ("*.python.org", "https://docs.python.org/", "allow"),
    "not the host itself": ("*.python.org", "https://python.org/", "ask"),
    "not a host that ends so": ("python.org", "https://evilpython.org/", "ask"),
    "not a host that begins so": ("python.org", "https://python.org.evil.com/", "ask"),
    "not a name in front of another host": ("python.org", "https://python.org@evil.com/", "ask"),
    "not behind a backslash": ("python.org", "https://evil.com\\@python.org/", "ask"),
    "a path": ("https://github.com/o/r/*", "https://github.com/o/r/blob/x", "allow"),
    "not another path": ("https://github.com/o/r/*", "https://github.com/o/x", "ask"),
    "not a path that leads out": ("https://github.com/o/r/*", "https://github.com/o/r/../x", "ask"),
    "not a path that leads out in disguise": (
        "https://github.com/o/r/*",
        "https://github.com/o/r/%2e%2e/x",
        "ask",
    ),
    "not a port that is none": ("python.org", "https://python.org:x/", "ask"),
}


@pytest.mark.parametrize(("pattern", "url", "verdict"), URLS.values(), ids=URLS)
def test_addresses(pattern: str, url: str, verdict: str) -> None:
    assert (
        decide(Policy(allow=(f"fetch({pattern})",)), "fetch", {"url": url}, needs="approval").verdict
        == verdict
    )


@pytest.mark.parametrize(
    ("url", "verdict"),
    [
        ("https://evil.com/", "deny"),
        ("http://evil.com/", "deny"),
        ("https://evil.com./", "deny"),
        ("https://x@evil.com/", "ask"),
        ("https://e\u0475il.com/", "ask"),
        ("https://good.com/", "allow"),
    ],
)
def test_an_address_that_may_be_denied_is_asked_for(url: str, verdict: str) -> None:
    policy = Policy(allow=("fetch",), deny=("fetch(evil.com)",))
    assert decide(policy, "fetch", {"url": url}, needs="approval").verdict == verdict


SUGGESTIONS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a program": ("shell", {"command": "ls -la"}, "shell(ls *)"),
    "a program and what it is to do": ("shell", {"command": "git log -5"}, "shell(git log *)"),
    "a program with an option first": ("shell", {"command": "git -C x log"}, "shell(git *)"),
    "what runs others, only as it is": ("shell", {"command": "python3 x.py"}, "shell(python3 x.py)"),
    "several commands, nothing": ("shell", {"command": "ls; ls"}, ""),
    "a word with a star of its own, nothing": ("shell", {"command": "ls '*'"}, ""),
    "a word with a space, nothing": ("shell", {"command": "ls 'a b'"}, ""),
    "an address's host": ("fetch", {"url": "https://docs.python.org/3/"}, "fetch(docs.python.org)"),
    "a file tool": ("edit", {"path": "a"}, "edit"),
    "a tool": ("mcp__a__b", {}, "mcp__a__b"),
}


@pytest.mark.parametrize(("tool", "arguments", "rule"), SUGGESTIONS.values(), ids=SUGGESTIONS)
def test_what_is_offered_to_be_remembered(tool: str, arguments: dict[str, Any], rule: str) -> None:
    assert suggestion(tool, arguments) == rule


PIECES = """git log ls rm 'a_b' "x" $X $( ` ) ( ; && | & > < 2>&1 { } * \\ ' " # A=1 if then fi ! x"""
WORDS = st.sampled_from([*PIECES.split(), "\n"])


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=8).map(" ".join) | st.text(max_size=20))
def test_what_is_offered_allows_what_it_was_offered_for(command: str) -> None:
    rule = suggestion("shell", {"command": command})
    if rule:
        assert (
            decide(Policy(allow=(rule,)), "shell", {"command": command}, needs="approval").verdict == "allow"
        )


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=8).map(" ".join), WORDS)
def test_a_command_with_a_substitution_or_a_file_is_never_plain(before: str, word: str) -> None:
    for hidden in ("$(rm x)", "`rm x`", "> file", "(rm x)", "<<E"):
        if read(before).plain:
            assert not read(f"{before} {hidden}").plain


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=8).map(" ".join))
def test_a_denied_command_stays_denied_or_asked_for_whatever_stands_before_it(before: str) -> None:
    for glue in ("; ", " && ", "\n", " | "):
        verdict = decide(RM, "shell", {"command": f"{before}{glue}rm x"}, needs="approval").verdict
        assert verdict != "allow", before


@pytest.mark.parametrize("rule", ["", "a b", "shell(x", "mcp__a(x)", "(x)", "shell)x("])
def test_a_rule_that_cannot_be_read_is_refused(rule: str) -> None:
    with pytest.raises(CallerError, match="approval rule"):
        Policy(deny=(rule,)).checked()


def test_what_is_remembered_for_good_is_kept_for_its_workspace(tmp_path: Path) -> None:
    file = tmp_path / "home" / "approvals.json"
    here, there = tmp_path / "here", tmp_path / "there"
    assert approval_file.load(file, here) == Policy()
    for rule in ("shell(ls *)", "edit", "shell(ls *)"):
        approval_file.remember(file, here, rule)
    approval_file.remember(file, there, "write")
    assert approval_file.load(file, here) == Policy(allow=("shell(ls *)", "edit"))
    assert approval_file.load(file, there) == Policy(allow=("write",))
    assert file.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in file.parent.iterdir()) == ["approvals.json", "approvals.json.lock"]


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"workspaces":{"x":[1]}}', b'{"format":99}', b"\xff"])
def test_approvals_that_cannot_be_read_stop_and_are_not_overwritten(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "approvals.json"
    file.write_bytes(data)
    for act in (
        lambda: approval_file.load(file, tmp_path),
        lambda: approval_file.remember(file, tmp_path, "edit"),
    ):
        with pytest.raises(CallerError, match="the approvals in"):
            act()
    assert file.read_bytes() == data


def test_a_rule_that_cannot_be_read_is_not_remembered(tmp_path: Path) -> None:
    with pytest.raises(CallerError):
        approval_file.remember(tmp_path / "f", tmp_path, "shell(")
    assert list(tmp_path.iterdir()) == []
