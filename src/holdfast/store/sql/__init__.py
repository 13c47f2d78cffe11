"""Stores that keep runs in an SQL database: the modules here are shared, and each dialect has a folder.

A shared module has statements and, beside each, the one function that sends it: `async def f(conn, ...)` over
a `Conn` (see `connection`, which also defines the notation of the statements). The methods of the store that
are alike everywhere are in `store`, `hold_store` and the `Sql...` classes of `schedules`, `queues`,
`concurrency_limits`, `fleet` and `projections`.

To add a dialect, write a folder with:

- `connect`: settings, how a connection is opened, and how the notation is translated (`statement`);
- `dialect`: the dialect's `Conn`, with what takes different statements there (`insert_run`, `number_events`,
  `load_admission`, `write_starts`, `notify`);
- `store`: a subclass of `SqlStore` with `now`, `_server_time`, `_read`, `_write` (and `_peek` if useful),
  `wait_change`, and the methods whose statements or connections are the dialect's own: `create`, `claim`,
  `extend`, `settle`, `park`, `set_idle`, `reclaim`, `claim_dead`, `lost_history`, `delete_run`, `feed`,
  `trim_feed`,
  `list_holds`, `count_holds`, `claim_outbox`, blobs, `examine`, `durability`;
- `migrate` and `schema/`: numbered migrations; `errors`: the driver's errors as Holdfast's; `copy` and
  `move_barrier`: moving a store to another database.

Then name it in `store/open` and in the list of stores of `tests/conformance`.

SQLite has no coroutines to wait for: its store drives the shared functions with `run_now`, in the thread that
writes or in place.
"""
