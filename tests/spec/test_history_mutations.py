"""No decision of the projection is untested: each is forced both ways, and the tables have to notice."""

from collections.abc import Callable
from types import ModuleType

import pytest
import test_identity_limits as identities
import test_pairing as pairing
import test_projection as properties
import test_shaping as shaping
from code_mutations import survivors
from test_ordinary import General

from lockstitch.history import clean, item_ids, media, pair, policy, project, reasoning, shape, wire_ids

EQUIVALENT: dict[ModuleType, set[str]] = {
    pair: {
        "forced True: message.seq is not None",  # an entry under None is never asked for
        "forced False: second in exchanges",  # a dead exchange has nothing left to answer
    },
    shape: {
        "forced False: not behind",  # a shortcut
        "forced False: not any((isinstance(block, Opaque) for block in content))",  # a shortcut
        "forced False: not cleaned.anomalies and extra is block.extra",  # an equal block instead of the same
    },
    project: {
        "forced True: budget != self._budget",  # a shortcut
    },
    media: {
        "forced False: media_type == image.media_type",  # an equal image instead of the same
    },
    reasoning: {
        "forced False: not cleaned.anomalies and extra is block.extra",  # an equal block instead of the same
    },
    clean: {
        "forced False: is_clean(text)",  # a shortcut
        "forced True: '\\x00' in text",  # the same
        "forced False: is_object(text)",  # a shortcut
        "forced False: text.isascii() and (not _SURROGATE_ESCAPE.search(text))",  # a shortcut
    },
}
"""Decisions whose other way gives the same requests, and why they are there."""


def _pairs(table: str, case: str) -> Callable[[], bool]:
    history, expected, anomalies = getattr(pairing, table)[case]

    def holds() -> bool:
        done = project.project(history, pairing.GENERIC, model="m")
        messages = tuple(map(pairing.calls_last, done.messages)) if table == "PAIRING" else done.messages
        lines = pairing.lines(messages, {"a", "b"})
        return lines == expected and [one.kind for one in done.anomalies] == anomalies

    return holds


def _shapes(case: str) -> Callable[[], bool]:
    target, history, expected, anomalies = shaping.TABLES[case]
    return lambda: shaping.projected(target, history) == (expected, anomalies)


def _passes(test: Callable[[], None]) -> Callable[[], bool]:
    def holds() -> bool:
        test()
        return True

    return holds


def _whole_ids(case: str) -> Callable[[], bool]:
    test = identities.test_an_id_with_a_signature_goes_back_whole_where_it_may_be_looked_for
    return _passes(lambda: test(case))


def _without_the_ordinary(check: Callable[[], bool]) -> Callable[[], bool]:
    """The check with every message going through the general pass, which ordinary ones are spared."""

    def holds() -> bool:
        kept, project.Ordinary = project.Ordinary, General  # type: ignore[misc]  # a class for a class
        try:
            return check()
        finally:
            project.Ordinary = kept  # type: ignore[misc]

    return holds


CHECKS: list[Callable[[], bool]] = [
    *(_pairs("PAIRING", case) for case in pairing.PAIRING),
    *(_pairs("LOGS", case) for case in pairing.LOGS),
    *(_shapes(case) for case in shaping.TABLES),
    _passes(pairing.test_anomalies_name_place_ids_and_content),
    _passes(properties.test_the_oldest_images_make_room_in_steps),
    _passes(properties.test_a_large_image_goes_when_there_are_many),
    _passes(properties.test_a_whole_turn_with_calls_keeps_its_reasoning_at_deepseek),
    *(_passes(lambda case=case: properties.test_reasoning_goes_back_to_whom_it_came_from(case))
      for case in properties.REASONING),
    *(_whole_ids(case) for case in identities.WHOLE_IDS),
    *(_passes(lambda case=case: pairing.test_a_fragment_to_be_counted_is_left_alone(case))
      for case in pairing.PAIRING),
    _passes(properties.test_a_rung_that_does_not_exist_is_the_callers_mistake),
    _passes(properties.test_a_target_without_room_for_ids_gets_text_in_the_end),
    _passes(pairing.test_a_resumed_pairing_is_that_of_the_whole),
]  # fmt: skip
CHECKS += map(_without_the_ordinary, tuple(CHECKS))


def _noticed() -> bool:
    """Whether any check fails; the one that does goes to the front, since it may fail again."""
    for place, check in enumerate(CHECKS):
        try:
            if check():
                continue
        except (Exception, pytest.fail.Exception):  # whatever a mutant raises is noticed
            pass
        CHECKS.insert(0, CHECKS.pop(place))
        return True
    return False


def test_the_checks_hold() -> None:
    assert not _noticed()


MODULES = [pair, shape, project, media, reasoning, clean, wire_ids, item_ids, policy]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_decision_matters(module: ModuleType) -> None:
    assert set(survivors(module, _noticed)) == EQUIVALENT.get(module, set())
