"""`graph FILE.dot`: a pipeline before any run of it, drawn."""

from __future__ import annotations

from holdfast.cli.commands.validate import read_pipeline
from holdfast.cli.output.screen import print_note
from holdfast.drawing import Picture
from holdfast.frontends.dot.parse import parse
from holdfast.frontends.dot.transforms import prepare
from holdfast.reports.pipelines import picture_of_pipeline


def picture_of_file(file: str, *, expand: bool) -> Picture:
    """Also of one that cannot run: a picture helps to see why. `expand`: with what it includes, and with
    what its stylesheet says."""
    source = read_pipeline(file)
    prepared = prepare(source, path=file)
    if prepared.errors:
        count = len(prepared.errors)
        print_note(f"{file} has {count} error{'' if count == 1 else 's'}: holdfast validate {file} tells.")
    return picture_of_pipeline(prepared.pipeline if expand else parse(source, path=file).pipeline)
