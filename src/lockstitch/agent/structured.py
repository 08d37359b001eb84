"""Structured output: the last answer of a turn as a value of a type, or the model is asked again.

Types that msgspec knows (dataclasses, TypedDict, msgspec structs, lists, ...) are validated by it; a pydantic
model, told by its methods, by itself. The schema goes to the model as text: that works with every provider,
beside tools too. ``Options.response_schema`` is there for whoever knows that theirs can do more.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..schema.blocks import Text
from ..schema.errors import CallerError
from .inputs import StopHookSaid

MAX_ASKS: Final = 3
"""How often an answer that does not fit is sent back."""
_FENCED: Final = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)


class Output:
    """Judges the answers of one turn; ``value`` is the first that fits."""

    def __init__(self, wanted: type[Any]) -> None:
        """Raises CallerError for a type that has no JSON Schema."""
        self._wanted = wanted
        self._pydantic = hasattr(wanted, "model_validate_json")
        self.schema = _schema(wanted, is_pydantic=self._pydantic)
        self.value: Any = None
        self.fits = False
        self._asks = 0

    @property
    def instructions(self) -> str:
        """What the model is told beside the prompt."""
        return (
            "When you have the answer, give it as one JSON value that fits this JSON Schema, nothing else:\n"
            + json.dumps(self.schema, ensure_ascii=False, sort_keys=True)
        )

    async def check(self, text: str) -> StopHookSaid:
        """Nothing if ``text`` fits; else the complaint for the model, until it was asked often enough."""
        try:
            self.value = self._decoded(json_text(text))
            self.fits = True
            return StopHookSaid()
        except ValueError as error:  # msgspec's and pydantic's validation errors are ValueErrors
            problem = " ".join(str(error).split())[:2_000]
        self._asks += 1
        if self._asks > MAX_ASKS:
            return StopHookSaid(failed=True, detail=f"the answer did not fit the type asked for: {problem}")
        complaint = f"That answer does not fit the schema: {problem}\n{self.instructions}"
        return StopHookSaid(messages=((Text(complaint),),))

    def _decoded(self, text: str) -> Any:
        if self._pydantic:
            return self._wanted.model_validate_json(text)
        return msgspec.json.decode(text, type=self._wanted, strict=False)


def json_text(text: str) -> str:
    """The JSON in an answer: all of it, or what stands in its only fence."""
    bare = text.strip()
    if not bare.startswith("```") and bare[:1] in "{[":
        return bare
    fenced = _FENCED.findall(bare)
    return fenced[0] if len(fenced) == 1 else bare


def require_schema(wanted: type[Any]) -> None:
    """Raises CallerError for a type that has no JSON Schema."""
    Output(wanted)


def _schema(wanted: type[Any], *, is_pydantic: bool) -> Mapping[str, Any]:
    if is_pydantic:
        made: Mapping[str, Any] = wanted.model_json_schema()
        return made
    try:
        return msgspec.json.schema(wanted)
    except (TypeError, NameError) as error:
        # Of what the library says only the end of some texts is about the type; the rest is how to use it.
        which = wanted.__name__ if isinstance(wanted, type) else repr(wanted)
        known = "use a dataclass, a TypedDict, a msgspec Struct, a pydantic model, or a list or dict of them"
        field = f" ({error})" if isinstance(error, NameError) else ""
        raise CallerError(
            f"output={which} is no type that a JSON Schema can be made of{field}; {known}"
        ) from None
