"""Linting and repairing plain requests: for people with an agent of their own.

A request goes in and out as the dict it is on the wire. What was valid comes back as it was, down to the
fields nobody here knows; what was not is projected like a history of our own, and every change is named.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..providers import dialects
from ..providers.catalog import DEFAULT_PROFILES, with_overrides
from ..providers.catalog import profile as catalog_profile
from ..providers.parsed import Target
from ..schema.errors import CallerError
from ..schema.notes import Violation
from ..schema.profiles import Profile
from .mending import Conversion, Mending, Repair
from .nesting import CUT_DEPTH, REQUEST_DEPTH_MAX, shallow
from .policy import RUNGS

__all__ = ["Repair", "lint", "repair", "target_profile"]

FACTS: Final = ("thinking", "store", "model")
"""Limits that say something about the request itself, where it does not say it in its fields."""


def lint(
    request: Mapping[str, Any],
    dialect: str,
    *,
    source: str | None = None,
    profile: str | Profile | None = None,
    **limits: Any,
) -> list[Violation]:
    """The rules of ``dialect`` that a request breaks, in order of place; none: it may be sent.

    ``source`` names the format the request is in, if it is another: it is then converted, without mending
    anything, before it is judged. ``limits`` override fields of the profile (``vision=False``). Raises
    CallerError for a name nobody knows, and for what is no mapping.
    """
    facts, target = _target(request, dialect, profile, limits)
    looked_at = shallow(request, REQUEST_DEPTH_MAX)
    request = looked_at.request
    if source is not None and source != dialect:
        request = Conversion(request, source, dialect, target).plain()
    return dialects.violations({**request, **facts}, dialect, target.profile) + looked_at.violations()


def repair(
    request: Mapping[str, Any],
    dialect: str,
    *,
    source: str | None = None,
    profile: str | Profile | None = None,
    **limits: Any,
) -> Repair:
    """The request in the format of ``dialect``, so that its provider accepts it.

    A request that breaks no rule comes back unchanged. Where mending once is not enough, it climbs the ladder
    of projections and stops at the first rung that is accepted. Arguments as for ``lint``; never raises on
    what a request may hold.
    """
    facts, target = _target(request, dialect, profile, limits)
    converts = source is not None and source != dialect
    if not converts and not lint(request, dialect, profile=profile, **limits):
        return Repair(dict(request), ())
    begun = shallow(request, CUT_DEPTH)
    make: Mending | Conversion
    if source is not None and converts:
        make = Conversion(begun.request, source, dialect, target)
    else:
        make = Mending(begun.request, dialect, target)
    made = Repair(dict(begun.request), ())
    for rung in RUNGS:
        made = make.on(rung, facts)
        if not dialects.violations({**made.request, **facts}, dialect, target.profile):
            break
    return Repair(made.request, begun.anomalies() + made.anomalies)


def target_profile(dialect: str, profile: str | Profile | None = None, **limits: Any) -> Profile:
    """The profile to judge by: the named one, spoken to in ``dialect``, with ``limits`` over its fields.

    A profile of another protocol lends its name and its limits of content to the dialect's own one, as for a
    vendor that has several endpoints. Raises CallerError for a name nobody knows.
    """
    own = DEFAULT_PROFILES.get(dialect)
    if own is None:
        raise CallerError(f"unknown dialect {dialect!r}; known: {', '.join(DEFAULT_PROFILES)}")
    named = profile if isinstance(profile, Profile) else catalog_profile(profile or own)
    if named.protocol != dialect:
        base = catalog_profile(own)
        named = msgspec.structs.replace(
            base,
            name=named.name,
            vision=named.vision,
            prefill=named.prefill,
            image_max_base64=named.image_max_base64 or base.image_max_base64,
            repeats_reasoning=dialect == "openai-responses" and named.repeats_reasoning,
        )
    return with_overrides(named, **limits) if limits else named


def _target(
    request: Mapping[str, Any], dialect: str, profile: str | Profile | None, limits: Mapping[str, Any]
) -> tuple[dict[str, Any], Target]:
    """What is known of the request beyond its fields, and whom it is for."""
    if not isinstance(request, Mapping):
        raise CallerError(f"a request is a mapping of its fields, not a {type(request).__name__}")
    facts = {name: limits[name] for name in FACTS if name in limits}
    if isinstance(facts.get("thinking"), bool):
        facts["thinking"] = {"type": "enabled" if facts["thinking"] else "disabled"}
    fields = {name: value for name, value in limits.items() if name not in FACTS}
    model = facts.get("model", request.get("model"))
    chosen = target_profile(dialect, profile, **fields)
    return facts, Target(chosen, model if isinstance(model, str) else "")
