"""Where a model is: profile, model name, address and key, resolved from what a user wrote."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from ..providers import catalog
from ..schema.errors import CallerError
from ..schema.profiles import Profile
from .credentials import MissingCredentialError, Secret, find_key

GENERIC: Final = "generic"


@dataclass(frozen=True, slots=True)
class Endpoint:
    profile: Profile
    model: str
    base_url: str
    """Without a slash at its end; may have a query (azure's ``api-version``), which every request keeps."""
    key: Secret | None = None

    def url(self, path: str) -> str:
        """The address of one of the API's paths; a base URL that already ends in it is taken as it is."""
        parts = urlsplit(self.base_url)
        extra = urlsplit(path)
        joined = parts.path if parts.path.endswith(extra.path) else parts.path + extra.path
        query = "&".join(query for query in (parts.query, extra.query) if query)
        return urlunsplit((parts.scheme, parts.netloc, joined, query, ""))

    def auth_headers(self) -> dict[str, str]:
        """Authentication of a request; holds the key, so it goes to the transport and nowhere else."""
        if self.key is None:
            return {}
        name = _KEY_HEADERS.get(self.profile.name) or _KEY_HEADERS.get(self.profile.protocol)
        if name is not None:
            return {name: self.key.reveal()}
        return {"Authorization": f"Bearer {self.key.reveal()}"}


_KEY_HEADERS: Final[Mapping[str, str]] = {
    "anthropic-messages": "x-api-key",
    "gemini": "x-goog-api-key",
    "azure": "api-key",
}
"""By profile, then by protocol; all others take a bearer token."""


def resolve(
    model: str,
    *,
    base_url: str | None = None,
    environ: Mapping[str, str],
    profiles: Mapping[str, Profile] | None = None,
    key_store: Callable[[str], str | None] | None = None,
) -> Endpoint:
    """The endpoint of ``provider:model``, or of a bare model name at ``base_url`` (then ``generic``).

    ``profiles``: instead of the catalog's. ``key_store`` is asked for a key by the name of its variable, if
    the environment has none.

    Raises CallerError on an unknown provider or a bad address, MissingCredentialError without a key where the
    profile needs one.
    """
    if any("\ud800" <= character <= "\udfff" for character in model + (base_url or "")):
        raise CallerError(f"the model {model!a}, or its base URL, is no Unicode text; check the spelling")
    profile, name = _split(model, base_url, catalog.profiles() if profiles is None else profiles)
    address = base_url or profile.base_url
    if not address:
        raise CallerError(f"{profile.name} has no address of its own; give one with --base-url (base_url=)")
    key = find_key(profile.key_env, environ) if profile.key_env else None
    if key is None and profile.key_env and key_store is not None:
        key = find_key(profile.key_env, {profile.key_env: key_store(profile.key_env) or ""})
    if key is None and profile.key_required:
        raise MissingCredentialError(
            f"no API key for {profile.name}: set {profile.key_env or 'its key variable'} and run this again"
        )
    return Endpoint(profile=profile, model=name, base_url=_address(address), key=key)


def _split(model: str, base_url: str | None, known: Mapping[str, Profile]) -> tuple[Profile, str]:
    provider, colon, name = model.partition(":")
    if colon and provider in known and name:
        return known[provider], name
    if not model or (colon and provider in known):
        raise CallerError(f"no model in {model!r}; write provider:model, e.g. deepseek:deepseek-chat")
    if base_url:  # names of local models have colons of their own, e.g. qwen3:8b
        return known[GENERIC], model
    if colon:
        raise CallerError(f"unknown provider {provider!r} in {model!r}; {_meant(provider, known)}")
    raise CallerError(
        f"no provider in {model!r}; write provider:model, or give a base URL (--base-url, base_url=)"
    )


def _meant(provider: str, known: Mapping[str, Profile]) -> str:
    close = difflib.get_close_matches(provider, known, n=1)
    return (f"did you mean {close[0]!r}? Known: " if close else "known: ") + ", ".join(known)


def _address(text: str) -> str:
    try:
        parts = urlsplit(text.strip())
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise CallerError(f"bad base URL: {error}; write it as https://host/path") from error
    if parts.scheme not in ("http", "https") or not host:
        raise CallerError(
            "bad base URL: it needs http:// or https:// and a host, e.g. http://127.0.0.1:8000/v1"
        )
    if parts.username is not None:
        raise CallerError("a base URL takes no user or password; put the key into its environment variable")
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), parts.query, ""))
