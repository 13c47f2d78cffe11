"""Write, review, write again: a loop with a limit, and a guardrail that corrects the text."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast import Flow, Violation


@dataclass
class Draft:
    topic: str = "harbours"
    text: str = ""
    turns: int = 0
    good: bool = False


draft = Flow("draft", state=Draft, effect="pure")


@draft.node
async def write(s: Draft) -> dict[str, object]:
    return {"text": f"{s.text} More about {s.topic}, secret 4711.".strip(), "turns": s.turns + 1}


@draft.node
async def review(s: Draft) -> dict[str, bool]:
    return {"good": len(s.text) > 80}


@draft.guardrail(on_violation="sanitize")
def no_secrets(s: Draft) -> Violation | None:
    if "secret" not in s.text:
        return None
    return Violation("the text tells a secret", replace={"text": s.text.replace("secret 4711", "…")})


draft.start(write)
draft.edge(write, review)
draft.loop(review, write, when="good == false", max=5)
draft.edge(review, no_secrets, when="good == true")


if __name__ == "__main__":
    print(draft.run_sync().expect().state.text)
