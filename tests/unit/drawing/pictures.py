"""Pictures for the tests: by hand, and at random from a seed."""

from __future__ import annotations

import random

from holdfast.drawing import EdgeStyle, Picture, PictureEdge, PictureNode, State


def picture(*edges: tuple[str, ...], **states: str) -> Picture:
    """`("a", "b")`, `("a", "b", "label")` or `("a", "b", "label", "loop")`."""
    names = dict.fromkeys(name for edge in edges for name in edge[:2])
    nodes = tuple(PictureNode(id=name, label=name, state=State(states.get(name, ""))) for name in names)
    return Picture(nodes=nodes, edges=tuple(_edge(*edge) for edge in edges), title="a picture")


def _edge(source: str, target: str, label: str = "", look: str = "plain") -> PictureEdge:
    return PictureEdge(source=source, target=target, label=label, look=EdgeStyle(look))


def random_picture(seed: int, count: int = 0, reach: int = 0) -> Picture:
    """Connected, with loops and labels here and there. `reach`: how far edges lead, 0: anywhere."""
    dice = random.Random(seed)
    count = count or dice.randrange(2, 24)
    reach = reach or dice.choice([3, 6, count])
    pairs = {(dice.randrange(max(0, i - reach), i), i) for i in range(1, count)}
    for _ in range(count // 2):
        a = dice.randrange(count - 1)
        pairs.add((a, dice.randrange(a + 1, min(count, a + reach + 1))))
    edges = [_edge(f"n{a}", f"n{b}", "x > 1" if dice.random() < 0.2 else "") for a, b in sorted(pairs)]
    for _ in range(dice.randrange(4)):
        a = dice.randrange(count)
        edges.append(_edge(f"n{dice.randrange(a, count)}", f"n{a}", look="loop"))
    wide = (PictureNode(id=f"n{i}", label="w" * dice.randrange(1, 12)) for i in range(count))
    return Picture(nodes=tuple(wide), edges=tuple(edges))


def tangle(count: int, edges: int, label: str = "") -> Picture:
    """A chain with edges between any two of its nodes, both ways."""
    dice = random.Random(1)
    pairs = {(i, i + 1) for i in range(count - 1)}
    while len(pairs) < edges:
        pairs.add((dice.randrange(count), dice.randrange(count)))
    nodes = tuple(PictureNode(id=f"n{i}", label=f"n{i}") for i in range(count))
    return Picture(nodes=nodes, edges=tuple(_edge(f"n{a}", f"n{b}", label) for a, b in sorted(pairs)))
