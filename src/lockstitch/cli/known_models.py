"""What is known of models: context windows and prices, from the user's settings and from genai-prices.

genai-prices (the extra ``prices``) ships its data, so nothing is asked of the network. It is imported
when the first price is needed, because it costs more than everything else this program loads.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from importlib.util import find_spec
from typing import Any, Final, Literal

from ..agent.state import Facts, Price
from .settings import ModelTable, Settings

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
HOW_TO_GET_PRICES: Final = "windows and prices of known models: pip install 'lockstitch[prices]'"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One line of ``lockstitch models``."""

    provider: str
    model: str
    facts: Facts
    source: Literal["settings", "genai-prices"]


def is_installed() -> bool:
    return find_spec("genai_prices") is not None


class KnownModels:
    """Looks models up; the user's settings go before the data, value by value."""

    def __init__(self, settings: Settings) -> None:
        self._own = settings.models

    def facts(self, provider: str, model: str) -> Facts:
        """What is known of a model; everything None where nothing is."""
        known = _of_data(provider, model)
        own = self._own.get(f"{provider}:{model}")
        return known if own is None else _own_facts(own, known)

    def all(self) -> Iterator[KnownModel]:
        """The user's own, then those of the data, by provider."""
        for name, table in self._own.items():
            provider, _, model = name.partition(":")
            yield KnownModel(provider, model, _own_facts(table, _of_data(provider, model)), "settings")
        if not is_installed():
            return
        from genai_prices.data_snapshot import get_snapshot

        providers = {provider.id: provider for provider in get_snapshot().providers}
        for profile, name in PROVIDERS.items():
            for found in providers[name].models if name in providers else ():
                if f"{profile}:{found.id}" not in self._own and not found.deprecated:
                    yield KnownModel(profile, found.id, _facts(found), "genai-prices")


def _own_facts(own: ModelTable, known: Facts) -> Facts:
    price = known.price
    if own.input is not None and own.output is not None:
        price = Price(own.input, own.output, cache_read=own.cache_read, cache_write=own.cache_write)
    return Facts(price=price, context_window=own.context_window or known.context_window)


def _of_data(provider: str, model: str) -> Facts:
    if provider not in PROVIDERS or not is_installed():
        return Facts()
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(model, None, PROVIDERS[provider], None)
    except LookupError:
        return Facts()
    return _facts(found)


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
