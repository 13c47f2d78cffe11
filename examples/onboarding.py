"""A node that reads like an ordinary function: steps that run once, and a question in the middle.

holdfast run examples/onboarding.py --input '{"name": "Ada"}'
holdfast answer RUN ada@example.org --resume
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast import Context, Flow


@dataclass
class Person:
    name: str = "Ada"
    account: str = ""
    mail: str = ""


onboarding = Flow("onboarding", state=Person)


def open_account(name: str) -> str:
    print(f"(opening an account for {name})")
    return f"acct-{name.lower()}"


def send_mail(address: str) -> str:
    print(f"(mail to {address})")
    return "sent"


@onboarding.script
async def welcome(s: Person, ctx: Context) -> dict[str, str]:
    # A step is recorded: when this function is entered again, its result is returned without a call.
    account = await ctx.step("open account", open_account, s.name, effect="external")
    reply = await ctx.ask(f"What is the mail address of {s.name}?")
    await ctx.step("send mail", send_mail, reply.decision, effect="external")
    return {"account": account, "mail": reply.decision}


company = Flow("company", state=Person)
each = company.subflow(
    "welcome_person", onboarding, outputs={"account": "state.account", "mail": "state.mail"}
)
company.start(each)


if __name__ == "__main__":
    result = company.run_sync({"name": "Ada"})
    print(result.status, [hold.prompt for hold in result.holds])
