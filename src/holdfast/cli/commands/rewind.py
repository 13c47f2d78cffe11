"""`holdfast rewind`: a fork that replaces its source."""

from __future__ import annotations

from holdfast.cli.app import Code, Json, Store, app, run_async
from holdfast.cli.fork_options import BranchOptions, Input, Moment, Patch, Resume, Sets, create_branch


@app.command(
    epilog="Example:  holdfast rewind 3fa9c1@assess --set amount=80 --resume",
)
def rewind(
    ref: Moment,
    patch: Patch = None,
    sets: Sets = None,
    input_: Input = None,
    resume: Resume = False,
    flow: Code = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Fork a run and replace it by the fork.

    The source run is cancelled and its holds are closed.
    """
    wanted = BranchOptions(ref, patch, tuple(sets or ()), input_, resume, flow, rewinds=True)
    return run_async(create_branch(wanted, store=store, json=json))
