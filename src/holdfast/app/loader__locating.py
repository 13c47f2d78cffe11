"""From `path/to/file.py:name` or `package.module:name` to a flow: a server finds them the same way."""

from __future__ import annotations

from holdfast.app.loader import FORMS as FORMS
from holdfast.app.loader import absolute as absolute
from holdfast.app.loader import address_in as address_in
from holdfast.app.loader import is_file as is_file
from holdfast.app.loader import load_flow as load_flow
from holdfast.app.loader import load_flows as load_flows
from holdfast.app.loader import split as split
