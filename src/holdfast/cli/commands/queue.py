"""`holdfast queue`: messages of queues."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from holdfast.cli.app import By, Json, Store, Text, app, run_async
from holdfast.cli.main import Exit
from holdfast.cli.options.json_input import read_json
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import print_line, print_note
from holdfast.cli.output.json_output import brief, print_json, print_list
from holdfast.cli.output.results import command
from holdfast.cli.output.tables import print_fields, print_table
from holdfast.errors import InputError
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.human_time import ago, clock_time
from holdfast.types.queue_message import MessageRow, MessageState
from holdfast.types.terms import Actor, operator

if TYPE_CHECKING:
    from holdfast.queues.service import QueueService

group = typer.Typer(
    no_args_is_help=True,
    help="Publish, claim, complete and requeue messages of queues.\n\n"
    "A queue is named SCOPE/QUEUE. Review requests of holds are messages, too.",
    epilog="Examples:  holdfast queue list   ·   holdfast queue list support/reviews --state dead   ·   "
    "holdfast queue publish support/reviews '{\"order\": 7}'   ·   holdfast queue claim support/reviews",
    rich_markup_mode=app.rich_markup_mode,
)
app.add_typer(group, name="queue")
Queue = Annotated[str, typer.Argument(help="SCOPE/QUEUE", metavar="QUEUE")]
Message = Annotated[str, typer.Argument(help="Message id", metavar="ID")]
Token = Annotated[int, typer.Option(help="Token of the claim, as `claim` printed it", min=1)]
Error = Annotated[Text, typer.Option(help="Reason, stored with the message", metavar="TEXT")]
Whose = Annotated[str, typer.Option("--tenant", help="Tenant")]
Ttl = Annotated[
    Text, typer.Option(help="How long the claim lasts (default: that of the queue, 5m)", metavar="DURATION")
]
Act = Callable[[Any, tuple[str, str, str], str], Awaitable[MessageRow]]
"""What is done: by the service, to a message (scope, queue, id) of a tenant."""


@group.command(epilog="Example:  holdfast queue publish support/tasks '{\"order\": 7}' --priority high")
def publish(
    queue: Queue,
    payload: Annotated[str, typer.Argument(help="JSON, @file, or - for stdin", metavar="JSON")],
    id: Annotated[Text, typer.Option(help="Message id; published only once", metavar="ID")] = None,  # noqa: A002
    type: Annotated[str, typer.Option(help="Type of the message", metavar="NAME")] = "message",  # noqa: A002
    correlation_id: Annotated[Text, typer.Option(help="Id of what it belongs to", metavar="ID")] = None,
    priority: Annotated[str, typer.Option(help="Priority", metavar="low|normal|high|critical")] = "normal",
    delay: Annotated[Text, typer.Option(help="Not claimable before: 30s, 5m", metavar="DURATION")] = None,
    expires_in: Annotated[Text, typer.Option(help="Expires after this time", metavar="DURATION")] = None,
    group_key: Annotated[
        Text, typer.Option(help="Messages of one group are claimed one at a time", metavar="KEY")
    ] = None,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Publish a message."""
    given = {
        "id": id, "type": type, "correlation_id": correlation_id, "priority": priority,
        "group_key": group_key, "tenant": tenant,
    }  # fmt: skip
    times = (_micros(delay, "--delay"), _micros(expires_in, "--expires-in"))
    content = read_json(payload, "the payload")
    return run_async(publish_message(queue, content, given, times, store=store, json=json))


@group.command("list", epilog="Example:  holdfast queue list support/reviews --state dead --json")
def list_(
    queue: Annotated[
        Text, typer.Argument(help="SCOPE/QUEUE; without it, all queues are listed", metavar="[QUEUE]")
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            help="ready, claimed, completed, dead, withdrawn or expired; may be repeated", metavar="STATE"
        ),
    ] = None,
    limit: Annotated[int, typer.Option(help="Maximum number of rows", min=1)] = 20,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """List queues with counts, or messages of one queue.

    Messages are listed newest first.
    """
    if queue is None:
        return run_async(list_queues(tenant, store=store, json=json))
    return run_async(list_messages(queue, state or [], limit, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast queue show support/reviews 3fa9c1d2-…")
def show(
    queue: Queue,
    message: Message,
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Show a message with its content, state and result."""
    return run_async(show_message(queue, message, tenant, store=store, json=json))


@group.command(epilog="Example:  holdfast queue claim support/reviews --limit 5 --ttl 15m --json")
def claim(
    queue: Queue,
    message: Annotated[
        Text, typer.Argument(help="Message id; without it, the next ready ones", metavar="[ID]")
    ] = None,
    limit: Annotated[int, typer.Option(help="Maximum number of messages", min=1, max=100)] = 1,
    wait: Annotated[
        str, typer.Option(help="How long to wait for a first one, up to 30s", metavar="DURATION")
    ] = "0s",
    ttl: Ttl = None,
    by: By = "user:local",
    tenant: Whose = "default",
    store: Store = None,
    json: Json = False,
) -> int:
    """Claim messages, by priority and age.

    Review requests are claimed only if the person of --by may decide them. The token that is printed
    completes or releases a message.
    """
    length, waits = _micros(ttl, "--ttl"), (_micros(wait, "--wait") or 0) / 1_000_000
    whose = operator(by, tenant=tenant, channel="cli")
    return run_async(claim_messages(queue, message, whose, limit, waits, ttl=length, store=store, json=json))


def message_command(example: str) -> Callable[[Callable[..., Act]], Callable[..., Act]]:
    """Adds a command about one message. The function has the options of its own and returns what is done; the
    queue, the message, the tenant, the store and the output are the same for all."""

    def add(own: Callable[..., Act]) -> Callable[..., Act]:
        def run(
            queue: Queue,
            message: Message,
            *,
            tenant: Whose = "default",
            store: Store = None,
            json: Json = False,
            **given: Any,
        ) -> int:
            act = own(**given)
            return run_async(_acted(queue, message, act, tenant=tenant, store=store, json=json))

        options = signature(own, eval_str=True).parameters.values()
        first, second, *others, _ = signature(run, eval_str=True).parameters.values()
        between = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in options]
        run.__signature__ = Signature([first, second, *between, *others])  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in (first, second, *between, *others)}
        group.command(own.__name__, help=own.__doc__, epilog=f"Example:  holdfast queue {example}")(run)
        return own

    return add


@message_command("extend support/reviews ID --token 4611686018427387904 --ttl 15m")
def extend(token: Token, ttl: Ttl = None) -> Act:
    """Extend a claim."""
    length = _micros(ttl, "--ttl")
    return lambda queues, place, tenant: queues.extend(*place, token, ttl=length, tenant=tenant)


@message_command("complete support/reviews ID --token 4611686018427387904 --result '{\"ok\": true}'")
def complete(
    token: Token,
    result: Annotated[Text, typer.Option(help="JSON, @file, or - for stdin", metavar="JSON")] = None,
    by: By = "user:local",
) -> Act:
    """Complete a claimed message. For a review request the result is the decision:
    {"decision": "approve", "comment": "..."}."""
    value = read_json(result, "--result")
    return lambda queues, place, tenant: queues.complete(
        operator(by, tenant=tenant, channel="cli"), *place, token, value
    )


@message_command("release support/reviews ID --token 4611686018427387904 --error 'no access'")
def release(
    token: Token,
    delay: Annotated[
        Text, typer.Option(help="Claimable again after this time (default: a back-off)", metavar="DURATION")
    ] = None,
    error: Error = None,
) -> Act:
    """Release a claimed message. After its last attempt it is a dead letter."""
    wait = _micros(delay, "--delay")
    return lambda queues, place, tenant: queues.release(*place, token, delay=wait, error=error, tenant=tenant)


@message_command("dead support/reviews ID --error 'unreadable'")
def dead(error: Error = None) -> Act:
    """Mark a message as dead. It is kept until it is requeued or withdrawn."""
    return lambda queues, place, tenant: queues.dead(
        operator("user:local", tenant=tenant, channel="cli"), *place, frees=True, error=error
    )


@message_command("requeue support/reviews ID")
def requeue() -> Act:
    """Make a dead message ready again, with all its attempts."""
    return lambda queues, place, tenant: queues.requeue(*place, tenant=tenant)


@message_command("withdraw support/reviews ID")
def withdraw() -> Act:
    """Withdraw an open or dead message."""
    return lambda queues, place, tenant: queues.withdraw(*place, tenant=tenant)


@group.command(epilog="Example:  holdfast queue reconcile")
def reconcile(store: Store = None, json: Json = False) -> int:
    """Compare holds, messages and brokers, and repair them.

    Open holds are compared with their messages, and brokers with the store. Ended messages are withdrawn
    from brokers; those that the store does not know are only counted. Workers do it every 5 minutes.
    """
    return run_async(reconcile_queues(store=store, json=json))


async def reconcile_queues(*, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        found = await (await hf.queues()).reconcile()
    if json:
        print_json(msgspec.to_builtins(found))
    else:
        print_line(
            f"{found.holds} open holds ask in a queue; {found.published} messages were published again, "
            f"{found.applied} completions applied, {found.withdrawn} ended messages withdrawn from brokers."
        )
        if found.unknown:
            print_line(f"{found.unknown} messages at brokers are not of this store: see `holdfast doctor`.")
    return Exit.ok


async def _acted(queue: str, message: str, act: Act, *, tenant: str, store: str | None, json: bool) -> Exit:
    async with open_store_for_command(store, must_exist=True) as hf:
        row = await act(await hf.queues(), (*_place(queue), message), tenant)
    return _print_message(row, json=json)


async def publish_message(
    queue: str,
    payload: Any,
    given: dict[str, Any],
    times: tuple[int | None, int | None],
    *,
    store: str | None,
    json: bool,
) -> Exit:
    async with open_store_for_command(store, must_exist=False) as hf:
        queues: QueueService = await hf.queues()
        now, (delay, lifetime) = queues.store.now(), times
        expires = None if lifetime is None else now + lifetime
        row = await queues.publish(
            *_place(queue), payload, visible_at=now + (delay or 0), expires_at=expires, **given
        )
    return _print_message(row, json=json)


async def list_queues(tenant: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.queues.view import counts_view

    async with open_store_for_command(store, must_exist=True) as hf:
        found = await (await hf.queues()).counts(tenant)
    if json:
        print_list([counts_view(each) for each in found])
    elif not found:
        print_line("No messages.")
    else:
        heads = ("queue", "ready", "claimed", "dead", "oldest")
        rows = [
            (f"{each.scope}/{each.queue}", str(each.ready), str(each.claimed), str(each.dead),
             _age(each.oldest) if each.ready else "")
            for each in found
        ]  # fmt: skip
        print_table(heads, rows)
    return Exit.ok


def _age(micros: int) -> str:
    return ago(0, micros)


async def list_messages(
    queue: str, states: list[str], limit: int, tenant: str, *, store: str | None, json: bool
) -> Exit:
    from holdfast.queues.view import message_view

    async with open_store_for_command(store, must_exist=True) as hf:
        queues: QueueService = await hf.queues()
        rows = await queues.list(*_place(queue), states=_states(states), limit=limit, tenant=tenant)
        now = queues.store.now()
    if json:
        print_list([message_view(row, token=True) for row in rows])
    elif not rows:
        print_line(f"No such messages in {queue}.")
    else:
        heads = ("id", "state", "type", "priority", "attempts", "claimed by", "published", "error")
        print_table(heads, [_line(row, now) for row in rows])
        print_note(f"Show one: {command('queue show', f'{queue} {rows[0].id}', store)}")
    return Exit.ok


def _line(row: MessageRow, now: int) -> tuple[str, ...]:
    return (
        row.id, str(row.state), row.type, row.priority, str(row.attempts), row.claimed_by or "",
        ago(row.created_at, now), (row.error or "")[:80],
    )  # fmt: skip


async def show_message(queue: str, id_: str, tenant: str, *, store: str | None, json: bool) -> Exit:
    from holdfast.queues.view import message_view

    async with open_store_for_command(store, must_exist=True) as hf:
        row = await (await hf.queues()).get(*_place(queue), id_, tenant=tenant)
    shown = message_view(row, token=True)
    if json:
        print_json(shown)
        return Exit.ok
    print_fields(
        [
            ("id", row.id),
            ("queue", f"{row.scope}/{row.queue}"),
            ("type", row.type),
            ("state", str(row.state)),
            ("priority", row.priority),
            ("attempts", f"{row.attempts} of {row.max_attempts or 'any number'}"),
            ("claimed by", f"{row.claimed_by} (token {row.claim_token})" if row.claimed_by else ""),
            ("claim until", clock_time(row.claim_until) if row.claim_until else ""),
            ("hold", row.hold or ""),
            ("correlation id", row.correlation_id or ""),
            ("published", clock_time(row.created_at)),
            ("completed by", row.completed_by or ""),
            ("error", row.error or ""),
            ("payload", brief(shown["payload"])),
            ("result", "" if row.result is None else brief(shown["result"])),
        ]
    )
    return Exit.ok


async def claim_messages(
    queue: str,
    id_: str | None,
    actor: Actor,
    limit: int,
    wait: float,
    *,
    ttl: int | None,
    store: str | None,
    json: bool,
) -> Exit:
    from holdfast.queues.view import message_view

    async with open_store_for_command(store, must_exist=True) as hf:
        queues: QueueService = await hf.queues()
        if id_ is None:
            rows = await queues.claim(actor, *_place(queue), limit=limit, wait=wait, ttl=ttl)
        else:
            rows = [await queues.claim_one(actor, *_place(queue), id_, ttl=ttl)]
    if json:
        print_list([message_view(row, token=True) for row in rows])
    elif not rows:
        print_line(f"No message of {queue} is ready for {actor.id}.")
    else:
        heads = ("id", "token", "type", "claim until", "payload")
        print_table(heads, [_claimed_line(row) for row in rows])
        first = f"{queue} {rows[0].id} --token {rows[0].claim_token} --result JSON"
        print_note(f"Complete one: {command('queue complete', first, store)}")
    return Exit.ok


def _claimed_line(row: MessageRow) -> tuple[str, ...]:
    until = clock_time(row.claim_until) if row.claim_until else ""
    return row.id, str(row.claim_token), row.type, until, row.payload.decode()[:80]


def _print_message(row: MessageRow, *, json: bool) -> Exit:
    from holdfast.queues.view import message_view

    if json:
        print_json(message_view(row, token=True))
    else:
        print_line(f"Message {row.id} of {row.scope}/{row.queue} is {row.state}.")
    return Exit.ok


def _place(queue: str) -> tuple[str, str]:
    scope, slash, name = queue.partition("/")
    if not slash:
        raise InputError(f"{queue!r} is not a queue.", hint="Write SCOPE/QUEUE, as support/reviews.")
    return scope, name


def _states(given: list[str]) -> tuple[MessageState, ...]:
    known = {str(state): state for state in MessageState}
    wrong = [each for each in given if each not in known]
    if wrong:
        raise InputError(f"{wrong[0]!r} is not a state.", hint=f"Choose from: {', '.join(known)}.")
    return tuple(known[each] for each in given)


def _micros(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    try:
        return parse_duration(text, allow_zero=True) // timedelta(microseconds=1)
    except DurationError as error:
        raise InputError(f"{option}: {error}.", hint="Write for instance 30s or 5m.") from error
