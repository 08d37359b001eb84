"""What is known of models: context windows and prices, from the user's settings and from genai-prices."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from ..agent.price_data import all_facts, facts_of
from ..agent.state import Facts, Price
from .settings import ModelTable, Settings

HOW_TO_GET_PRICES: Final = "windows and prices of known models: pip install 'lockstitch[prices]'"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One line of ``lockstitch models``."""

    provider: str
    model: str
    facts: Facts
    source: Literal["settings", "genai-prices"]


class KnownModels:
    """Looks models up; the user's settings go before the data, value by value."""

    def __init__(self, settings: Settings) -> None:
        self._own = settings.models

    def facts(self, provider: str, model: str) -> Facts:
        """What is known of a model; everything None where nothing is."""
        known = facts_of(provider, model)
        own = self._own.get(f"{provider}:{model}")
        return known if own is None else _own_facts(own, known)

    def all(self) -> Iterator[KnownModel]:
        """The user's own, then those of the data, by provider."""
        for name, table in self._own.items():
            provider, _, model = name.partition(":")
            yield KnownModel(provider, model, _own_facts(table, facts_of(provider, model)), "settings")
        for provider, model, facts in all_facts():
            if f"{provider}:{model}" not in self._own:
                yield KnownModel(provider, model, facts, "genai-prices")


def _own_facts(own: ModelTable, known: Facts) -> Facts:
    price = known.price
    if own.input is not None and own.output is not None:
        price = Price(own.input, own.output, cache_read=own.cache_read, cache_write=own.cache_write)
    return Facts(price=price, context_window=own.context_window or known.context_window)
