"""`holdfast fork`: a new run from a checkpoint of another run."""

from __future__ import annotations

from holdfast.cli.app import Code, Json, Store, app, run_async
from holdfast.cli.branch import BranchOptions, Input, Moment, Patch, Resume, Sets, create_branch


@app.command(
    epilog="Examples:  holdfast fork 3fa9c1@assess --set amount=80   ·   holdfast fork 3fa9c1@4 --patch @p"
)
def fork(
    ref: Moment,
    patch: Patch = None,
    sets: Sets = None,
    input_: Input = None,
    resume: Resume = False,
    flow: Code = None,
    store: Store = None,
    json: Json = False,
) -> int:
    """Create a new run from a checkpoint of another run.

    The source run is not changed.
    """
    wanted = BranchOptions(ref, patch, tuple(sets or ()), input_, resume, flow, rewinds=False)
    return run_async(create_branch(wanted, store=store, json=json))
