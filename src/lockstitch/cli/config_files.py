"""Where settings are read from: options, variables, the project's file, the user's file.

A project's file comes with a folder that somebody else may have written. Until the user has said that it is
to be trusted (``lockstitch config trust``), only what can do no harm is taken from it.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ..schema.errors import CallerError, StorageError
from ..session.home import HOME_VARIABLE
from .settings import Layer, Settings, layered, read, trusted_part

PROJECT_FILE: Final = "lockstitch.toml"
USER_FILE: Final = "config.toml"
TRUST_FILE: Final = "trusted.json"
APPROVALS_FILE: Final = "approvals.json"
FILE_MAX: Final = 1024 * 1024
"""Bytes of a configuration file."""
VARIABLES: Final[Mapping[str, str]] = {
    "model": "LOCKSTITCH_MODEL",
    "base_url": "LOCKSTITCH_BASE_URL",
    "store": "LOCKSTITCH_STORE",
}
"""Settings that a variable can give."""
FLAGS: Final[Mapping[str, str]] = {
    "model": "--model",
    "base_url": "--base-url",
    "store": "--store",
    "budget.steps": "--max-steps",
}


def config_home(environ: Mapping[str, str]) -> Path:
    """The directory of the user's configuration. It need not exist."""
    home = environ.get(HOME_VARIABLE)
    if home:
        return Path(home).expanduser()
    import platformdirs

    return Path(platformdirs.user_config_dir("lockstitch", appauthor=False))


def load(
    workspace: Path, environ: Mapping[str, str], *, flags: Mapping[str, object] | None = None
) -> Settings:
    """The settings for work in a folder. Raises CallerError, naming the file and what is wrong in it."""
    layers, notices = [], list[str]()
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    layers += [Layer("flag", FLAGS[key], {key: value}) for key, value in given.items()]
    layers += [
        Layer("environment", name, {key: environ[name]})
        for key, name in VARIABLES.items()
        if environ.get(name)
    ]
    file = project_file(workspace)
    if file is not None:
        text = _text(file)
        values: dict[str, Any] = read(text, str(file))
        if not is_trusted(file, text, environ):
            values, left = trusted_part(values)
            if left:
                notices.append(
                    f"{file} is not trusted, so it does not set {', '.join(left)}; "
                    "read it, then run: lockstitch config trust"
                )
        layers.append(Layer("project", str(file), values))
    own = config_home(environ) / USER_FILE
    if own.is_file():
        layers.append(Layer("user", str(own), read(_text(own), str(own))))
    return layered(layers, notices=notices)


def project_file(workspace: Path) -> Path | None:
    """The nearest ``lockstitch.toml``, from the workspace upward."""
    for folder in (workspace, *workspace.parents):
        file = folder / PROJECT_FILE
        if file.is_file():
            return file
    return None


def is_trusted(file: Path, text: str, environ: Mapping[str, str]) -> bool:
    """Whether the user has trusted this file with this content; a changed file has to be trusted anew."""
    return _trusted(environ).get(os.path.realpath(file)) == _digest(text)


def trust(file: Path, environ: Mapping[str, str], *, trusted: bool = True) -> None:
    """Remember, or forget, that the file is trusted as it is now. Raises CallerError, StorageError."""
    known = _trusted(environ)
    known.pop(os.path.realpath(file), None)
    if trusted:
        text = _text(file)
        read(text, str(file))
        known[os.path.realpath(file)] = _digest(text)
    place = config_home(environ) / TRUST_FILE
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = place.with_name(f"{place.name}.{os.getpid()}.tmp")
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(known)) + b"\n")
        temporary.replace(place)
    except OSError as error:
        raise StorageError(f"{place} cannot be written: {error.strerror}") from error


def _trusted(environ: Mapping[str, str]) -> dict[str, str]:
    place = config_home(environ) / TRUST_FILE
    try:
        return msgspec.json.decode(place.read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise CallerError(f"{place} cannot be read ({error}); mend or remove it") from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _text(file: Path) -> str:
    try:
        with file.open("rb") as source:
            data = source.read(FILE_MAX + 1)
        if len(data) > FILE_MAX:
            raise CallerError(f"{file} is larger than a configuration file can be ({FILE_MAX:,} bytes)")
        return data.decode()
    except OSError as error:
        raise CallerError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise CallerError(f"{file} is not UTF-8 at byte {error.start}") from error
