"""``lockstitch models``: which providers and models there are, with windows and prices."""

import os
import sys
from pathlib import Path
from typing import Any, Final

import click

from ..agent.price_data import is_installed
from ..agent.state import Facts
from ..llm.credentials import find_key
from ..schema.profiles import Profile
from . import config_files, exit_codes
from .config import tell
from .known_models import HOW_TO_GET_PRICES, KnownModel, KnownModels
from .lines import json_text

FORM_VERSION: Final = 1
"""Of the JSON lines: docs/cli.md."""


@click.command("models")
@click.argument("provider", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def models(*, provider: str | None, as_json: bool) -> int:
    """List the providers and, with PROVIDER or --json, their known models: window and prices.

    Prices are US dollars for a million tokens: input, output, read from a cache, written to it.
    """
    settings = config_files.load(Path.cwd(), os.environ)
    if provider is not None and provider not in settings.profiles:
        known = ", ".join(settings.profiles)
        raise click.UsageError(f"unknown provider {provider!r}; known: {known}")
    wanted = [model for model in KnownModels(settings).all() if provider in (None, model.provider)]
    if as_json:
        profiles = [profile for name, profile in settings.profiles.items() if provider in (None, name)]
        lines = [_profile_json(profile) for profile in profiles] + [_model_json(model) for model in wanted]
    elif provider is None:
        counts = {name: sum(model.provider == name for model in wanted) for name in settings.profiles}
        lines = [_profile_line(profile, counts[name]) for name, profile in settings.profiles.items()]
    else:
        width = max((len(f"{model.provider}:{model.model}") for model in wanted), default=0)
        lines = [_model_line(model, width) for model in wanted]
    for line in lines:
        sys.stdout.write(line + "\n")
    tell(settings.notices)
    if not is_installed():
        click.echo(f"lockstitch: {HOW_TO_GET_PRICES}", err=True)
    elif provider is None and not as_json:
        click.echo("lockstitch: `lockstitch models PROVIDER` lists its models", err=True)
    return exit_codes.DONE


def _key_state(profile: Profile) -> str:
    if profile.key_env is None:
        return "no key"
    if find_key(profile.key_env, os.environ) is not None:
        return f"{profile.key_env} is set"
    return f"{profile.key_env} is not set" + ("" if profile.key_required else " (not needed)")


def _profile_line(profile: Profile, count: int) -> str:
    known = f"{count} models" if count else ""
    where = profile.base_url or "(--base-url)"
    return f"{profile.name:18} {profile.protocol:20} {known:12} {where}  {_key_state(profile)}".rstrip()


def _model_line(model: KnownModel, width: int) -> str:
    window = f"{model.facts.context_window:>9,}" if model.facts.context_window else f"{'?':>9}"
    name = f"{model.provider}:{model.model}"
    return f"{name:{width}}  {window} tokens  {_price_text(model.facts)}"


def _price_text(facts: Facts) -> str:
    price = facts.price
    if price is None:
        return "price unknown"
    parts = [f"${price.input:g} in", f"${price.output:g} out"]
    if price.cache_read is not None:
        parts.append(f"${price.cache_read:g} cache read")
    if price.cache_write is not None:
        parts.append(f"${price.cache_write:g} cache write")
    return ", ".join(parts)


def _profile_json(profile: Profile) -> str:
    fields: dict[str, Any] = {"v": FORM_VERSION, "type": "provider", "provider": profile.name}
    fields |= {"protocol": profile.protocol, "base_url": profile.base_url, "key_env": profile.key_env}
    fields["has_key"] = profile.key_env is not None and find_key(profile.key_env, os.environ) is not None
    return json_text(fields)


def _model_json(model: KnownModel) -> str:
    price = model.facts.price
    fields: dict[str, Any] = {"v": FORM_VERSION, "type": "model", "provider": model.provider}
    fields |= {"model": model.model, "context_window": model.facts.context_window, "source": model.source}
    rates = ("input", "output", "cache_read", "cache_write")
    fields["usd_per_mtok"] = None if price is None else {name: getattr(price, name) for name in rates}
    return json_text(fields)
