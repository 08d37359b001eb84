"""A profile: what is particular to one provider behind a protocol, as data."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

Protocol = Literal["openai-chat", "anthropic-messages", "openai-responses", "gemini"]
Effort = Literal[
    "reasoning_effort", "thinking", "thinking_and_effort", "enable_thinking", "reasoning", "chat_template"
]
"""``reasoning_effort``: as OpenAI has it. ``thinking``: an object with a ``type``, alone or with the former.
``enable_thinking``: a switch. ``reasoning``: an object (OpenRouter). ``chat_template``: the switch within
``chat_template_kwargs``."""


class Profile(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Facts about one provider. Read from providers/catalog.toml and the user's configuration."""

    name: str
    protocol: Protocol
    base_url: str | None = None
    """None: it must be given (``--base-url``)."""
    key_env: str | None = None
    """Environment variable that holds the key."""
    key_required: bool = True
    missing_call_id: Literal["refuse", "mint"] = "refuse"
    markup_calls: tuple[str, ...] = ()
    """Families of marked-up tool calls that become calls: ``hermes``, ``dsml``, ``kimi``."""
    reasoning_back: Literal["never", "tool_turns", "always"] = "never"
    """Whether stored reasoning is passed back to the provider that wrote it."""
    reasoning_field: str = "reasoning_content"
    reasoning_placeholder: str | None = None
    """Sent as reasoning where the provider demands some and none is stored."""
    repeats_reasoning: bool = False
    """Reasoning goes back as plain text, before each call of its response (DeepSeek's responses endpoint)."""
    id_pattern: str = "[A-Za-z0-9_.:|-]"
    """Character class allowed in a call id."""
    id_max: int = 64
    id_exact: int | None = None
    """Exact length of a call id (mistral: 9)."""
    signed_ids: bool = False
    """An id with a thought's signature in it (LiteLLM) goes back as it came, whatever its length."""
    vision: bool = True
    strict_alternation: bool = False
    prefill: bool = False
    """Whether a request may end in an assistant message."""
    image_max_base64: int | None = None
    """Largest image, in characters of base64."""
    image_max_px: int | None = None
    """Largest side of an image, in pixels."""
    images_max: int | None = None
    images_many: int | None = None
    """With more images than this in a request, ``images_many_px`` is the largest side of each."""
    images_many_px: int | None = None
    max_tokens_field: str = "max_tokens"
    default_max_tokens: int | None = None
    unsupported: tuple[str, ...] = ()
    """Names of Options fields that the provider refuses; they are left out with a note."""
    stream_usage: bool = True
    """Whether ``stream_options.include_usage`` is sent (openai-chat)."""
    effort: Effort = "reasoning_effort"
    """How the reasoning effort is said (openai-chat)."""
    body: Mapping[str, Any] | None = None
    """Fields of every request's body (openai-chat); those of ``Options.extra`` win over them."""
    context_window: int | None = None
    """Tokens, where every model of the provider has the same; models override it."""
