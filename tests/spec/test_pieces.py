"""A text that comes in small pieces is the same text, and is kept in few of them."""

from hypothesis import given
from hypothesis import strategies as st

from lockstitch.wire.pieces import PIECES_MAX, Pieces


@given(st.lists(st.tuples(st.text(max_size=9), st.booleans()), max_size=4 * PIECES_MAX))
def test_the_text_is_all_pieces_joined_whenever_they_are_settled(given: list[tuple[str, bool]]) -> None:
    pieces, said = Pieces(), ""
    for piece, settle in given:
        pieces.latest.append(piece)
        said += piece
        if settle:
            pieces.settle()
    assert pieces.text() == said
    assert pieces.text() == said, "asking changes nothing"


def test_few_pieces_are_kept_of_many() -> None:
    pieces = Pieces()
    for _ in range(10 * PIECES_MAX):
        pieces.latest.append("word\r\n")
        pieces.settle()
        assert len(pieces.latest) < PIECES_MAX
    assert pieces.text() == "word\r\n" * (10 * PIECES_MAX)
