"""What a request may hold: facts of a protocol, a profile and a rung, as one value the projection reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ..schema.errors import CallerError
from ..schema.messages import Message, Role
from ..schema.profiles import Profile, Protocol
from .ladder import RUNGS, Rung

IMAGE_TYPES: Final[Mapping[Protocol, frozenset[str]]] = {
    "openai-chat": frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"}),
    "anthropic-messages": frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"}),
    "openai-responses": frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"}),
    "gemini": frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}),
}
"""Media types that each protocol's documents list for images."""

OPAQUE_TYPES: Final[Mapping[tuple[Protocol, Role], frozenset[str]]] = {
    ("openai-chat", "user"): frozenset({"input_audio", "file", "video_url"}),
    ("openai-chat", "assistant"): frozenset({"refusal"}),
    ("anthropic-messages", "user"): frozenset({"document", "search_result", "container_upload"}),
    ("anthropic-messages", "assistant"): frozenset(
        {
            "server_tool_use",
            "web_search_tool_result",
            "web_fetch_tool_result",
            "code_execution_tool_result",
            "bash_code_execution_tool_result",
            "text_editor_code_execution_tool_result",
            "mcp_tool_use",
            "mcp_tool_result",
        }
    ),
    ("openai-responses", "user"): frozenset({"input_file"}),
    ("openai-responses", "assistant"): frozenset(
        {
            "refusal",
            "web_search_call",
            "file_search_call",
            "code_interpreter_call",
            "image_generation_call",
            "mcp_call",
            "mcp_list_tools",
        }
    ),
    ("gemini", "user"): frozenset({"fileData", "inlineData"}),
    ("gemini", "assistant"): frozenset({"fileData", "inlineData", "executableCode", "codeExecutionResult"}),
}
"""Blocks foreign to our values that may go back to their own protocol, by the role that holds them."""


__all__ = ["RUNGS", "Policy", "Rung", "policy"]


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything that decides how a history is shaped. Equal policies give equal requests."""

    profile: Profile
    model: str
    rung: Rung
    media: bool
    """Whether images and files go with the request at all; False where just these were refused."""
    thinking: bool
    """Whether the request asks the model to reason, as far as is known."""
    stored: bool
    """Whether the provider keeps the conversation, so that ids of its items can be resolved (responses)."""
    results_with_user: bool
    """Results are parts of a user message (anthropic, gemini) instead of messages of their own."""
    results_alone: bool
    """A message with results holds nothing else (gemini)."""
    images_in_results: bool
    images_in_answers: bool
    """Images the model itself made may go back in its messages (gemini)."""
    alternate: bool
    """No two neighbouring messages of one role."""
    user_first: bool
    """The conversation begins with a user message."""
    system_anywhere: bool
    """A system message may stand behind the start of the conversation."""
    blank_beside_calls: bool
    """Blank text is tolerated in an assistant message that has calls."""
    texts_before_calls: bool
    """Text of a message with calls stands before them: results must follow calls at once (responses)."""
    signed_reasoning: bool
    """Reasoning goes back only with its signature (anthropic)."""
    takes_sealed: bool
    """Reasoning may be nothing but its encrypted form (anthropic, responses)."""
    reasoning_leads: bool
    """Something follows the reasoning in its message (anthropic, responses)."""
    sealed_reasoning: bool
    """Reasoning goes back only in its encrypted form (responses, unless the provider stores it)."""
    item_ids: bool
    """Blocks may carry ids of the provider's items (responses)."""
    image_types: frozenset[str]
    name_max: int
    """Characters of a tool's name."""

    @property
    def strict(self) -> bool:
        """Whether the request is to be as plain as its content allows."""
        return self.rung != "normal"

    def reasoning(self) -> bool:
        """Whether any reasoning goes back on this rung."""
        return RUNGS.index(self.rung) < RUNGS.index("no_reasoning")

    def images(self) -> bool:
        """Whether any image is sent on this rung."""
        return self.media and RUNGS.index(self.rung) < RUNGS.index("no_media")

    def wrote(self, message: Message) -> bool:
        """Whether the target itself wrote the message, so that its reasoning and signatures are its own."""
        return message.provider == self.profile.name and message.model == self.model

    def keeps_opaque(self, protocol: str, value: Any, role: Role) -> bool:
        """Whether a block that is foreign to our values may be sent as it is in a message of ``role``."""
        if protocol != self.profile.protocol or self.strict or not isinstance(value, dict):
            return False
        if role == "user" and not self.media:  # what a user's message may hold so are files and their like
            return False
        known = OPAQUE_TYPES.get((self.profile.protocol, role), frozenset())
        if protocol == "gemini":
            return any(key in known and _holds_data(key, value[key]) for key in value)
        kind = value.get("type")
        return isinstance(kind, str) and kind in known


def _holds_data(key: str, data: Any) -> bool:
    """Whether a part of gemini's is more than its name."""
    if not isinstance(data, dict):
        return False
    if key == "inlineData":
        kind = data.get("mimeType", data.get("mime_type"))
        return all(isinstance(text, str) and text for text in (kind, data.get("data")))
    return key != "fileData" or isinstance(data.get("fileUri", data.get("file_uri")), str)


def policy(
    profile: Profile,
    *,
    model: str,
    rung: str = "normal",
    thinking: bool = True,
    stored: bool = False,
    media: bool = True,
) -> Policy:
    """The policy of one target on one rung. Raises CallerError for a rung that does not exist."""
    if rung not in RUNGS:
        raise CallerError(f"no ladder rung is called {rung!r}; there are {', '.join(RUNGS)}")
    protocol = profile.protocol
    strict = rung != "normal"
    if strict and profile.signed_ids:
        profile = msgspec.structs.replace(profile, signed_ids=False)
    anthropic, gemini = protocol == "anthropic-messages", protocol == "gemini"
    alternate = anthropic or gemini or profile.strict_alternation or strict
    return Policy(
        profile=profile,
        model=model,
        rung=rung,
        media=media,
        thinking=thinking,
        stored=stored,
        results_with_user=anthropic or gemini,
        results_alone=gemini,
        images_in_results=anthropic or protocol == "openai-responses",
        images_in_answers=gemini,
        alternate=alternate,
        user_first=alternate,
        system_anywhere=not alternate,
        blank_beside_calls=protocol == "openai-chat" and not strict,
        texts_before_calls=protocol == "openai-responses" or strict,
        signed_reasoning=anthropic,
        takes_sealed=protocol in ("anthropic-messages", "openai-responses"),
        reasoning_leads=protocol in ("anthropic-messages", "openai-responses"),
        sealed_reasoning=protocol == "openai-responses" and not (stored or profile.repeats_reasoning),
        item_ids=protocol == "openai-responses",
        image_types=IMAGE_TYPES[protocol],
        name_max=128 if anthropic else 64,
    )
