"""The picture of the house in ``docs/design/``, drawn from the imports.

``python -m tests.house`` draws it anew.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import dataclass
from functools import cache, cached_property
from html import escape

from testing.project import ROOT
from tests.test_floors import FACE, FLOORS, imported_rooms, modules, room_of

XMLNS = "http://www.w3.org/2000/svg"
LEGEND = (
    "An arrow is an import. Imports that a chain of arrows implies, and those from the foundation, "
    "are left out."
)
PICTURE = ROOT / "docs" / "design" / "house.svg"

WIDTH, WALL, GAP = 980, 84, 36
ROOF, BAND, CORRIDOR, GROUND = 120, 74, 40, 96
LANES = (-6, 6, 0)
#: From the top floor to the one above the foundation: the lower, the closer to the bytes.
FILLS = [
    "#fdf1dc",
    "#fbe7d3",
    "#f7dfe0",
    "#ece0f1",
    "#dfe6f6",
    "#d6ecf2",
    "#d5efe3",
    "#e2efd0",
    "#eef2c8",
    "#f6f3c9",
]
INK, STONE, SKY = "#22303c", "#3f5566", "#e9eef2"
STYLE = f"""
text {{ font: 12.5px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #46545f }}
.middle {{ text-anchor: middle }}
.name {{ font: 700 16px ui-monospace, "SF Mono", Menlo, Consolas, monospace; fill: {INK} }}
.floor {{ font-size: 22px; font-weight: 700; fill: #9aa7b1 }}
.light {{ fill: {SKY} }}
.import {{ fill: none; stroke: #5d6f7d; stroke-width: 1.8; marker-end: url(#arrow) }}
.room {{ stroke: #8b9aa6; stroke-width: 1.2 }}
"""


@cache
def imports_between_rooms() -> dict[str, set[str]]:
    """The rooms above the foundation, and from which others each imports."""
    inner = {room for floor in FLOORS[1:] for room in floor} - FACE
    found: dict[str, set[str]] = {room: set() for room in inner}
    for path in modules():
        if room_of(path) in inner:
            found[room_of(path)] |= imported_rooms(path) & inner - {room_of(path)}
    return found


@cache
def arrows() -> list[tuple[str, str]]:
    """The imports that no chain of others implies: A -> C goes where A -> B -> C is."""
    direct = imports_between_rooms()

    @cache
    def below(room: str) -> set[str]:
        return direct[room].union(*map(below, direct[room]))

    return sorted(
        (room, other)
        for room, others in direct.items()
        for other in others
        if not any(other in below(between) for between in others)
    )


@dataclass(frozen=True, slots=True)
class Box:
    """A room on the paper."""

    name: str
    duty: str
    floor: int
    x: float
    width: float

    @property
    def top(self) -> int:
        return top_of(self.floor)

    @property
    def bottom(self) -> int:
        return self.top + BAND


def top_of(floor: int) -> int:
    return ROOF + (len(FLOORS) - 1 - floor) * (BAND + CORRIDOR)


class House:
    """Where everything stands."""

    def __init__(self) -> None:
        #: How many arrows pass an opening already: they run side by side.
        self._passing: Counter[tuple[int, float]] = Counter()

    @cached_property
    def boxes(self) -> dict[str, Box]:
        placed = {}
        for number, rooms in list(enumerate(FLOORS))[1:]:
            shown = {name: duty for name, duty in rooms.items() if name not in FACE}
            width = (WIDTH - 2 * WALL - GAP * (len(shown) - 1)) / len(shown)
            width = min(width, 380)
            start = (WIDTH - len(shown) * width - GAP * (len(shown) - 1)) / 2
            for i, (name, duty) in enumerate(shown.items()):
                placed[name] = Box(name, duty, number, start + i * (width + GAP), width)
        return placed

    def openings(self, floor: int) -> list[float]:
        """Where an arrow may pass a floor: between its rooms, and beside them."""
        row = [box for box in self.boxes.values() if box.floor == floor]
        between = [box.x + box.width + GAP / 2 for box in row[:-1]]
        return [row[0].x - GAP / 2, *between, row[-1].x + row[-1].width + GAP / 2]

    def route(self, source: Box, target: Box, leaves: float, enters: float) -> str:
        """The path of an arrow, around the rooms of the floors between."""
        at, height = leaves, source.bottom
        path = [f"M{at:.0f} {height:.0f}"]
        for floor in range(source.floor - 1, target.floor, -1):
            part = (source.floor - floor) / (source.floor - target.floor)
            wanted = leaves + (enters - leaves) * part
            opening = min(self.openings(floor), key=lambda x: abs(x - wanted))
            lane = opening + LANES[self._passing[floor, opening] % len(LANES)]
            self._passing[floor, opening] += 1
            path.append(curve(at, height, lane, top_of(floor)))
            path.append(f"V{top_of(floor) + BAND}")
            at, height = lane, top_of(floor) + BAND
        path.append(curve(at, height, enters, target.top - 3))
        return " ".join(path)

    def arrow_paths(self) -> list[str]:
        """Arrows side by side at both ends, in the order of where they lead."""
        pairs = [(self.boxes[a], self.boxes[b]) for a, b in arrows()]
        paths = []
        for source, target in pairs:
            out = sorted((b for a, b in pairs if a is source), key=lambda box: box.x)
            into = sorted((a for a, b in pairs if b is target), key=lambda box: box.x)
            leaves = source.x + source.width * (out.index(target) + 1) / (len(out) + 1)
            enters = target.x + target.width * (into.index(source) + 1) / (len(into) + 1)
            paths.append(self.route(source, target, leaves, enters))
        return paths


def curve(x0: float, y0: float, x1: float, y1: float) -> str:
    middle = (y0 + y1) / 2
    return f"C{x0:.0f} {middle:.0f} {x1:.0f} {middle:.0f} {x1:.0f} {y1:.0f}"


def element(tag: str, *content: str, **attributes: object) -> str:
    """An element of SVG; what stands in it is SVG already."""
    given = "".join(f' {name.rstrip("_")}="{value}"' for name, value in attributes.items())
    return f"<{tag}{given}>{''.join(content)}</{tag}>" if content else f"<{tag}{given}/>"


def words(kind: str, x: float, y: float, *lines: str) -> list[str]:
    """Lines of text, one below the other, around ``x``."""
    return [
        element("text", escape(line), class_=f"{kind} middle", x=round(x), y=round(y + 16 * i))
        for i, line in enumerate(lines)
    ]


def draw() -> str:
    """The picture as SVG."""
    house = House()
    height = top_of(0) + GROUND + 50
    tip = element("path", d="M0 0L8 4L0 8z", fill="#5d6f7d")
    arrow = {"viewBox": "0 0 8 8", "refX": 6, "refY": 4, "markerWidth": 6, "markerHeight": 6}
    parts = [
        element("title", "The rooms of secure_bloom, floor by floor, and what each imports"),
        element("style", STYLE),
        element("defs", element("marker", tip, id="arrow", orient="auto", **arrow)),
        element("rect", width=WIDTH, height=height, rx=14, fill="#ffffff"),
        *_shell(),
        *(element("path", class_="import", d=path) for path in house.arrow_paths()),
        *(part for box in house.boxes.values() for part in _room(box)),
        *_foundation(),
        *words("", WIDTH / 2, height - 18, LEGEND),
    ]
    size = {"viewBox": f"0 0 {WIDTH} {height}", "width": WIDTH, "height": height}
    svg = element("svg", "\n", "\n".join(parts), "\n", xmlns=XMLNS, role="img", **size)
    return f"{svg}\n"


def _shell() -> list[str]:
    """Walls and roof; the face lives under the roof."""
    eaves, middle = ROOF - 22, WIDTH // 2
    wall = f"M44 {eaves}V{top_of(0)}H{WIDTH - 44}V{eaves}z"
    return [
        element("path", d=wall, fill="#f7f9fa", stroke="#c3ccd3"),
        element("path", d=f"M{middle} 12L{WIDTH - 20} {eaves}H20z", fill=STONE),
        *words("name light", middle, 62, "secure_bloom"),
        *words("light", middle, 82, FLOORS[-1]["__init__"]),
    ]


def _room(box: Box) -> list[str]:
    fill = FILLS[len(FLOORS) - 1 - box.floor]
    at = {"x": round(box.x), "y": box.top, "width": round(box.width), "height": BAND, "rx": 9}
    lines = textwrap.wrap(box.duty, int(box.width / 6.6))
    middle, start = box.x + box.width / 2, box.top + BAND / 2 - 8 * (len(lines) - 1)
    return [
        *words("floor", 68, box.top + BAND / 2 + 8, str(box.floor)),
        element("rect", class_="room", fill=fill, **at),
        *words("name", middle, start - 4, box.name),
        *words("", middle, start + 15, *lines),
    ]


def _foundation() -> list[str]:
    top, width = top_of(0), (WIDTH - 40) / len(FLOORS[0])
    parts = [element("rect", x=20, y=top, width=WIDTH - 40, height=GROUND, rx=6, fill=STONE)]
    for i, (name, duty) in enumerate(FLOORS[0].items()):
        middle = 20 + width * (i + 0.5)
        parts += words("name light", middle, top + 30, name)
        parts += words("light", middle, top + 52, *textwrap.wrap(duty, int(width / 7)))
    return parts


if __name__ == "__main__":
    PICTURE.write_text(draw())
