"""Keys from the system's keyring, where the package ``keyring`` is installed.

A key lies there under the service ``lockstitch`` and the name of its environment variable; the user puts it
there with ``keyring set lockstitch DEEPSEEK_API_KEY``.
"""

from importlib.util import find_spec
from typing import Final

SERVICE: Final = "lockstitch"


def key_from_keyring(name: str) -> str | None:
    """The key stored under this name; None if there is none, no keyring, or no package."""
    if find_spec("keyring") is None:
        return None
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password(SERVICE, name)
    except KeyringError:
        # No backend, or a locked one that the user did not open: as good as no key, and the missing key is
        # told by its variable's name in any case.
        return None
