"""Context windows and prices of known models, from genai-prices (the extra ``prices``).

It ships its data, so nothing is asked of the network. It is imported when a price is first needed, because it
costs more than everything else this package loads.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from importlib.util import find_spec
from typing import Any, Final

from .state import Facts, Price

PROVIDERS: Final[Mapping[str, str]] = {
    "deepseek": "deepseek",
    "moonshot": "moonshotai",
    "kimi": "moonshotai",
    "openrouter": "openrouter",
    "groq": "groq",
    "mistral": "mistral",
    "fireworks": "fireworks",
    "minimax": "minimax",
    "zhipu": "zhipuai",
    "zai": "zai",
    "azure": "azure",
    "openai": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "gemini": "google",
}
"""A profile's name in genai-prices 0.2 (https://github.com/pydantic/genai-prices, read 2026-11-30)."""


def is_installed() -> bool:
    return find_spec("genai_prices") is not None


def facts_of(provider: str, model: str) -> Facts:
    """What is known of a model, both by their names here; everything None where nothing is, or no data."""
    if provider not in PROVIDERS or not is_installed():
        return Facts()
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(model, None, PROVIDERS[provider], None)
    except LookupError:
        return Facts()
    return _facts(found)


def all_facts() -> Iterator[tuple[str, str, Facts]]:
    """Every model of the data that is not deprecated: provider, name, facts."""
    if not is_installed():
        return
    from genai_prices.data_snapshot import get_snapshot

    providers = {provider.id: provider for provider in get_snapshot().providers}
    for profile, name in PROVIDERS.items():
        for found in providers[name].models if name in providers else ():
            if not found.deprecated:
                yield profile, found.id, _facts(found)


def _facts(found: Any) -> Facts:
    """The price by the text rates of now; steps by prompt size count with their first."""
    now = found.get_prices(datetime.now(UTC))
    rates = [_rate(getattr(now, f"{name}_mtok")) for name in ("input", "output", "cache_read", "cache_write")]
    price = None
    if rates[0] is not None and rates[1] is not None:
        price = Price(rates[0], rates[1], cache_read=rates[2], cache_write=rates[3])
    return Facts(price=price, context_window=found.context_window)


def _rate(value: Any) -> float | None:
    if value is None or isinstance(value, int | float | Decimal):
        return None if value is None else float(value)
    return float(value.base)
