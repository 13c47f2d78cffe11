"""Methods of the hold service for comments, files, drafts and personal notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import InputError
from holdfast.holds.actions.context import HoldContext
from holdfast.holds.actions.submission import Submission, read_draft
from holdfast.types.clock import instant
from holdfast.types.hold import Note
from holdfast.types.terms import Actor

if TYPE_CHECKING:
    from holdfast.holds.forms.attached_files import AttachedFile
    from holdfast.holds.forms.file_references import Reference

When = datetime | timedelta | int
"""A datetime with a time zone, a timedelta from now, or microseconds since the epoch."""


class CommentMethods:
    ctx: HoldContext

    async def comment(self, actor: Actor, hold: str, text: str) -> Note:
        from holdfast.holds.actions import comments

        return await comments.comment(self.ctx, actor, hold, text)

    async def comments(self, actor: Actor, hold: str) -> Sequence[Note]:
        """Comments, questions asked back and their answers, oldest first."""
        from holdfast.holds.actions import comments

        return await comments.comments(self.ctx, actor, hold)

    # ------------------------------------------------------------------ files
    async def attach(
        self,
        actor: Actor,
        hold: str,
        field: str,
        name: str,
        data: bytes | Path,
        *,
        media_type: str | None = None,
    ) -> Reference:
        """Store a file for a field of kind `file` (`items.invoice`: a column of a table). Put the returned
        reference into the `response_data` of the decision. `data`: its content, or the path of a local file.

        Raises FormInvalidError for a file that is too large, of a type that the field does not accept, of a
        type that differs from its name, or refused by the scan."""
        from holdfast.holds.forms import attachments

        return await attachments.attach(self.ctx, actor, hold, field, name, data, media_type=media_type)

    async def files(self, actor: Actor, hold: str) -> Sequence[AttachedFile]:
        """The attached files, oldest first."""
        from holdfast.holds.forms import attachments

        return await attachments.attached(self.ctx, actor, hold)

    async def read_file(self, actor: Actor, hold: str, sha256: str) -> tuple[Reference, bytes]:
        """A file of a hold, and its content. Raises NotFoundError, BlobMissingError."""
        from holdfast.holds.forms import attachments

        return await attachments.read(self.ctx, actor, hold, sha256)

    # ------------------------------------------------------------------ personal notes
    async def save_draft(self, actor: Actor, hold: str, draft: Submission | Mapping[str, Any]) -> None:
        """Save an unfinished answer: `{decision, response_data, comment}`, each optional."""
        from holdfast.holds.actions import comments

        submission = draft if isinstance(draft, Submission) else read_draft(draft)
        await comments.save_draft(self.ctx, actor, hold, submission)

    async def draft(self, actor: Actor, hold: str) -> Submission | None:
        from holdfast.holds.actions import comments

        return await comments.draft(self.ctx, actor, hold)

    async def delete_draft(self, actor: Actor, hold: str) -> None:
        from holdfast.holds.actions import comments

        await comments.delete_draft(self.ctx, actor, hold)

    async def watch(self, actor: Actor, hold: str) -> None:
        from holdfast.holds.actions import snooze

        await snooze.watch(self.ctx, actor, hold)

    async def unwatch(self, actor: Actor, hold: str) -> None:
        from holdfast.holds.actions import snooze

        await snooze.unwatch(self.ctx, actor, hold)

    async def snooze(self, actor: Actor, hold: str, until: When) -> None:
        """Hide the hold from the actor's lists until then."""
        from holdfast.holds.actions import snooze

        await snooze.snooze(self.ctx, actor, hold, self._instant(until))

    async def snoozed_until(self, actor: Actor, hold: str) -> int | None:
        """Until when the actor has snoozed it; None if they have not."""
        from holdfast.holds.actions import snooze

        return await snooze.snoozed_until(self.ctx, actor, hold)

    async def unsnooze(self, actor: Actor, hold: str) -> None:
        from holdfast.holds.actions import snooze

        await snooze.unsnooze(self.ctx, actor, hold)

    async def seen(self, actor: Actor, hold: str) -> None:
        """Record that the actor has seen it."""
        from holdfast.holds.actions import snooze

        await snooze.mark_seen(self.ctx, actor, hold)

    def _instant(self, when: When) -> int:
        try:
            return instant(when, self.ctx.now())
        except ValueError as error:
            raise InputError(f"{error}.") from None
