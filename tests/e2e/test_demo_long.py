"""The demo of a conversation beyond its model's window, at a smaller size."""

from lockstitch.cli.demo_long import play
from lockstitch.cli.demo_print import Narrator


def test_a_talk_of_many_windows_goes_on_to_its_end() -> None:
    results = play(Narrator(), tokens=40_000)
    assert [(check.sentence, check.found) for check in results if not check.holds] == []
    assert len(results) == 7
