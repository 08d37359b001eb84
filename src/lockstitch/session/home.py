"""Where sessions lie on this machine."""

from collections.abc import Mapping
from pathlib import Path

HOME_VARIABLE = "LOCKSTITCH_HOME"


def sessions_root(environ: Mapping[str, str]) -> Path:
    """The directory that holds one directory per session. It need not exist yet.

    ``LOCKSTITCH_HOME`` moves everything; without it sessions lie under the user's data directory.
    """
    home = environ.get(HOME_VARIABLE)
    if home:
        return Path(home).expanduser() / "sessions"
    import platformdirs  # costs more than the rest of this module, and a set variable does without

    return Path(platformdirs.user_data_dir("lockstitch", appauthor=False)) / "sessions"
