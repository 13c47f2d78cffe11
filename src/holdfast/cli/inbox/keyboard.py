"""Escape as a key of its own, also where another key follows at once.

A terminal sends the same bytes for Escape and then `q` as for Alt and `q`. textual takes them for Alt if they
arrive within 100 ms, or together while the machine is busy, and drops the Escape: Escape and Enter would be
Enter alone, which decides. The inbox has no keys with Alt.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from textual import events
from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver

_ESCAPE: Final = "\x1b"
_BEGINS_A_SEQUENCE: Final = ("[", "O")


class EscapeParser(XTermParser):
    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        """`alt`: one character after an Escape that began no sequence in time."""
        if len(sequence) == 2 and sequence[0] == _ESCAPE and sequence[1] not in _BEGINS_A_SEQUENCE:
            # Alt-Backspace, Alt-B and Alt-F edit a line, and some terminals send them for Alt and an arrow.
            alt = not isinstance(ANSI_SEQUENCES_KEYS.get(sequence), tuple)
            sequence = sequence[1] if alt else sequence
        if alt:
            yield events.Key("escape", _ESCAPE)
        yield from super()._sequence_to_key_events(sequence)


class InboxDriver(linux_driver.LinuxDriver):
    def run_input_thread(self) -> None:
        # A driver makes its parser itself, and has no setting for it.
        linux_driver.XTermParser = EscapeParser  # pyright: ignore[reportPrivateImportUsage]
        super().run_input_thread()
