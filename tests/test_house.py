"""The picture of the house shows the imports as they are."""

from __future__ import annotations

from tests.house import PICTURE, arrows, draw, imports_between_rooms


def test_the_picture_is_that_of_the_imports() -> None:
    assert PICTURE.read_text() == draw(), "draw it anew: python -m tests.house"


def test_arrows_lead_wherever_an_import_does() -> None:
    def reached(room: str) -> set[str]:
        below = {other for one, other in arrows() if one == room}
        return below.union(*map(reached, below))

    for room, others in imports_between_rooms().items():
        assert reached(room) >= others
