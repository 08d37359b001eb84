"""The process between the agent and a command: it ends the command's whole tree, whatever ends the agent.

Run as a script, for every command, so only what starts fast is imported. Standard input is a lifeline: it
begins with what to run (a line with a length, then that many bytes, the arguments with NUL between them),
and when it closes, because the agent asked for it or was killed, everything that the command started is
ended. Standard output becomes the command's output. Standard error carries lines to the agent: ``pid N`` at
the start, in the end ``ended NAME`` and ``left NAME`` for background processes and then ``status N`` or
``signal N`` or ``stopped ...``; or ``error TEXT`` if the command could not be started.

On Linux the process is made a subreaper, so that processes whose parent died (double forks, ``setsid``)
become its children and not init's, and none can leave the tree (prctl(2), PR_SET_CHILD_SUBREAPER). Elsewhere
the tree is read from ``ps`` when it is ended: a process that left the group and lost its parent is then
missed.

With ``--watch-parent PID BYTES OPENERS -- ARGV...`` there is no lifeline: standard input is the command's
own, the death of the parent process is noticed by polling, and SIGTERM ends the tree. For servers that speak
JSON lines over standard input and output; one that writes a line of more than so many bytes, or opening
brackets, is ended, since its reader would take the line into memory whatever its size.
"""

import _thread
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

TERM_GRACE_S = 0.4
"""From SIGTERM to SIGKILL; the agent waits 1.5 s for a run to stop, so both must fit well within."""
KILL_PAUSE_S = 0.02
GIVE_UP_S = 3600.0
"""A process in uninterruptible sleep cannot be killed; after this it is left."""
PARENT_POLL_S = 0.5
RELAY_S = 2.0
"""For the last of a server's output to be taken by its reader."""
NAMES_MAX = 10
NAME_MAX_CHARS = 120

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LINUX = sys.platform.startswith("linux")


def main() -> int:
    if len(sys.argv) > 6 and sys.argv[1] == "--watch-parent":
        relay = _Relay(int(sys.argv[3]), int(sys.argv[4]))
        status = _supervise(sys.argv[6:], int(sys.argv[2]), lifeline=None, relay=relay)
        relay.end()
        return status
    argv = _asked(0)
    if argv is None:
        return 0  # the agent died before it said anything
    return _supervise(argv, os.getppid(), lifeline=0)


def _asked(descriptor: int) -> "list[str] | None":
    data = b""
    while True:
        length, line_end, rest = data.partition(b"\n")
        if line_end and len(rest) >= int(length):
            return [os.fsdecode(part) for part in rest.split(b"\0")]
        piece = os.read(descriptor, 65536)
        if not piece:
            return None
        data += piece


class _Relay:
    """Passes the command's standard output on, as long as no line of it is too large."""

    def __init__(self, line_max: int, openers_max: int) -> None:
        self._line_max = line_max
        self._openers_max = openers_max
        self._target = os.dup(1)
        self._source, theirs = os.pipe()
        os.dup2(theirs, 1)  # which the command inherits
        os.close(theirs)
        self._running = _thread.allocate_lock()

    def start(self) -> None:
        """To be called when the command has its end, since a thread is not forked with the rest."""
        self._running.acquire()
        _thread.start_new_thread(self._run, ())

    def end(self) -> None:
        """Waits for what the command wrote last; it must have ended."""
        self._running.acquire(timeout=RELAY_S)

    def _run(self) -> None:
        length = openers = 0
        try:
            while piece := os.read(self._source, 65536):
                unended = piece[piece.rfind(b"\n") + 1 :]
                if len(unended) < len(piece):
                    length = openers = 0
                length += len(unended)
                openers += unended.count(b"{") + unended.count(b"[")
                if length > self._line_max or openers > self._openers_max:
                    _tell(f"ended: it wrote a line of more than {self._line_max} bytes or too many values")
                    os.kill(os.getpid(), signal.SIGTERM)
                    return
                while piece:
                    piece = piece[os.write(self._target, piece) :]
        except OSError:
            return  # the reader is gone
        finally:
            os.close(self._target)
            self._running.release()


def _supervise(argv: list[str], parent: int, lifeline: int | None, relay: "_Relay | None" = None) -> int:
    prctl = _prctl()
    if prctl is not None:
        prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_IGN)  # the lifeline alone decides
    told_to_stop: list[int] = []
    if lifeline is None:
        signal.signal(signal.SIGTERM, lambda number, _frame: told_to_stop.append(number))
    main_pid = _spawn(argv, lifeline, prctl)
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 1)  # else the output never ends while this process lives
    if relay is not None:
        relay.start()
    if lifeline is None:
        os.dup2(devnull, 0)
    else:
        _tell(f"pid {main_pid}")
    status = _watch(main_pid, parent, lifeline, wake_read, told_to_stop)
    ended, left = _end_tree(main_pid, status is None)
    if lifeline is None:
        return 0 if status is None else _shell_status(status)
    for word, names in (("ended", ended), ("left", left)):
        for name in names:
            _tell(f"{word} {name}")
    if status is None:
        _tell("stopped by the agent")
    elif os.WIFSIGNALED(status):
        _tell(f"signal {os.WTERMSIG(status)}")
    else:
        _tell(f"status {os.WEXITSTATUS(status)}")
    return 0


def _prctl() -> "Callable[..., int] | None":
    if not _LINUX:
        return None
    try:
        import ctypes

        return ctypes.CDLL(None, use_errno=True).prctl
    except (ImportError, OSError, AttributeError):
        return None  # a Python without ctypes: the group is still ended


def _spawn(argv: list[str], lifeline: int | None, prctl: "Callable[..., int] | None") -> int:
    report = os.dup(2)  # not inheritable: closed by a successful exec
    pid = os.fork()
    if pid:
        os.close(report)
        return pid
    try:
        os.setsid()
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, as it does SIGPIPE
        if lifeline is not None:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(1, 2)
        os.execvp(argv[0], argv)  # noqa: S606  # no shell is wanted: argv is what was asked for
    except OSError as error:
        _tell(f"error {argv[0]}: {error.strerror}", report)
    finally:
        os._exit(127)


def _watch(
    main_pid: int, parent: int, lifeline: int | None, wake: int, told_to_stop: list[int]
) -> int | None:
    """The wait status of the command when it ends, or None when the agent wants it ended."""
    watched = [wake] if lifeline is None else [wake, lifeline]
    while True:
        ready, _, _ = select.select(watched, [], [], PARENT_POLL_S)
        if wake in ready:
            os.read(wake, 4096)
        status = _reap(main_pid)
        if status is not None:
            return status
        if lifeline in ready and not os.read(lifeline, 4096):
            return None
        if told_to_stop or os.getppid() != parent:
            return None


def _reap(main_pid: int) -> int | None:
    """Collects every child that ended; the status of the command if it was among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == main_pid:
            found = status


def _end_tree(main_pid: int, forced: bool) -> tuple[list[str], list[str]]:
    """Ends what is left: SIGTERM, then SIGKILL until nothing is. Returns names of the ended and the left."""
    tree = _tree(main_pid)
    if not tree and not forced:
        return [], []
    names = [] if forced else [_name(pid) for pid in sorted(tree)[:NAMES_MAX]]
    _signal_group(main_pid, signal.SIGTERM)
    _signal(tree, signal.SIGTERM)
    started = time.monotonic()
    while True:
        _reap(main_pid)
        tree = _tree(main_pid)
        if not tree:
            return names, []
        elapsed = time.monotonic() - started
        if elapsed > GIVE_UP_S:
            return names, [_name(pid) for pid in sorted(tree)[:NAMES_MAX]]
        if elapsed > TERM_GRACE_S:
            _kill(main_pid)
        time.sleep(KILL_PAUSE_S if elapsed < 5 else 1.0)


def _kill(main_pid: int) -> None:
    """SIGKILL for all, after SIGSTOP for all: a tree that forks faster than it is read is frozen first."""
    seen: set[int] = set()
    for _ in range(20):
        new = _tree(main_pid) - seen
        if not new:
            break
        _signal(new, signal.SIGSTOP)
        seen |= new
    _signal_group(main_pid, signal.SIGKILL)
    _signal(seen, signal.SIGKILL)


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return  # gone, or not ours to signal


def _signal(pids: set[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def _tree(main_pid: int) -> set[int]:
    """Living descendants of this process, and members of the command's group."""
    parents, groups = _processes()
    found = {pid for pid, group in groups.items() if group == main_pid}
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    todo = [os.getpid(), *found]
    while todo:
        for child in children.get(todo.pop(), ()):
            if child not in found:
                found.add(child)
                todo.append(child)
    return found


def _processes() -> tuple[dict[int, int], dict[int, int]]:
    """Parent and group of every living process that can be seen; zombies are left out."""
    parents: dict[int, int] = {}
    groups: dict[int, int] = {}
    for pid, state, parent, group in _from_proc() if _LINUX else _from_ps():
        if state[:1] not in "ZX":
            parents[pid] = parent
            groups[pid] = group
    return parents, groups


def _from_proc() -> list[tuple[int, str, int, int]]:
    rows = []
    for name in os.listdir("/proc"):  # noqa: PTH208  # pathlib takes longer to import than all else here
        if not name.isdigit():
            continue
        # the second field is the program's name in brackets and may hold anything, proc_pid_stat(5)
        fields = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()
        if fields:
            rows.append((int(name), fields[0].decode(), int(fields[1]), int(fields[2])))
    return rows


def _from_ps() -> list[tuple[int, str, int, int]]:
    import subprocess

    rows = []
    listed = subprocess.run(
        ["ps", "-axo", "pid=,stat=,ppid=,pgid="], capture_output=True, text=True, check=False
    )
    for line in listed.stdout.splitlines():
        pid, state, parent, group = line.split()[:4]
        rows.append((int(pid), state, int(parent), int(group)))
    return rows


def _name(pid: int) -> str:
    text = _read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode("utf-8", "replace")
    return (" ".join(text.split()) or f"process {pid}")[:NAME_MAX_CHARS]


def _read(path: str) -> bytes:
    """The beginning of a file of /proc; empty if the process ended meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return os.read(descriptor, 4096)
        finally:
            os.close(descriptor)
    except OSError:
        return b""


def _tell(line: str, descriptor: int = 2) -> None:
    try:
        os.write(descriptor, line.replace("\n", " ").encode("utf-8", "replace") + b"\n")
    except OSError:
        return  # the agent is gone: nobody to tell


def _shell_status(status: int) -> int:
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


if __name__ == "__main__":
    sys.exit(main())
