"""What a request may hold: facts of a protocol, a profile and a rung, as one value the projection reads."""

from dataclasses import dataclass
from typing import Final, Literal

from ..schema.errors import CallerError
from ..schema.messages import Message
from ..schema.profiles import Profile

Rung = Literal["normal", "strict", "no_reasoning", "no_media", "flattened", "digest"]

RUNGS: Final[tuple[Rung, ...]] = ("normal", "strict", "no_reasoning", "no_media", "flattened", "digest")
"""From the fullest to the plainest; each gives up what those before it gave up, and something more."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything that decides how a history is shaped. Equal policies give equal requests."""

    profile: Profile
    model: str
    rung: Rung
    thinking: bool
    """Whether the request asks the model to reason, as far as is known."""
    results_with_user: bool
    """Results are parts of a user message (anthropic, gemini) instead of messages of their own."""
    images_in_results: bool
    alternate: bool
    """No two neighbouring messages of one role, and the first one is the user's."""
    system_anywhere: bool
    """A system message may stand behind the start of the conversation."""
    blank_beside_calls: bool
    """Blank text is tolerated in an assistant message that has calls."""
    signed_reasoning: bool
    """Reasoning goes back only with its signature."""
    name_max: int
    """Characters of a tool's name."""

    def strict(self) -> bool:
        """Whether the request is to be as plain as its content allows."""
        return self.rung != "normal"

    def reasoning(self) -> bool:
        return RUNGS.index(self.rung) < RUNGS.index("no_reasoning")

    def images(self) -> bool:
        return self.profile.vision and RUNGS.index(self.rung) < RUNGS.index("no_media")

    def wrote(self, message: Message) -> bool:
        """Whether the target itself wrote the message, so that its reasoning and signatures are its own."""
        return message.provider == self.profile.name and message.model == self.model


def policy(profile: Profile, *, model: str, rung: str = "normal", thinking: bool = True) -> Policy:
    """The policy of one target on one rung. Raises CallerError for a rung that does not exist."""
    if rung not in RUNGS:
        raise CallerError(f"no ladder rung is called {rung!r}; there are {', '.join(RUNGS)}")
    protocol = profile.protocol
    strict = rung != "normal"
    with_user = protocol in ("anthropic-messages", "gemini")
    return Policy(
        profile=profile,
        model=model,
        rung=rung,
        thinking=thinking,
        results_with_user=with_user,
        images_in_results=protocol == "anthropic-messages",
        alternate=with_user or profile.strict_alternation or strict,
        system_anywhere=not (with_user or profile.strict_alternation or strict),
        blank_beside_calls=protocol == "openai-chat" and not strict,
        signed_reasoning=protocol == "anthropic-messages",
        name_max=64,
    )
