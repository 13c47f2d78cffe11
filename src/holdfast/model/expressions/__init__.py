"""The condition language of edges and routers.

    amount > 100 && (decision == 'approve' || input.vip)
    score >= 0.8 ? 'publish' : 'review'

An expression reads values by dotted path and compares them. It has no loops, arithmetic or calls except
`exists`, so evaluating one always ends, touches nothing, and costs about a microsecond.

Meaning, where languages differ:

* `&&`, `||`, `!` (or `and`, `or`, `not`) always give a boolean. `!` binds tighter than a comparison and
  `not` looser, as in the languages they come from: `!a == b` is `(!a) == b`, `not a == b` is `!(a == b)`.
* `==` compares int, float and Decimal by value; a float beside a Decimal counts as the decimal it is
  written as, so Decimal('99.99') == 99.99. A boolean never equals a number. Lists equal tuples with equal
  items. `!=` is always the opposite of `==`.
* A path that leads nowhere is an error (MissingNameError): a misspelt name must not choose an edge. A name
  that may be missing is read as `exists(x)` or `x | default(...)`; null is a value. What is not evaluated is
  not read: `exists(x) && x > 3` is safe.
* `===` and `!==` are `==` and `!=`. They do not separate 1 from 1.0.
* `<`, `<=`, `>`, `>=` order numbers, strings, bytes and dates, each among themselves; anything else,
  such as `'a' > 3` or `null > 3`, is an error (NotComparableError).
* `x in y` is `==` against each item of a list or key of a mapping, or a substring of a string; in anything
  else it is false. `not in` is its opposite.
* Comparisons do not chain: write `1 < x && x < 5`.

`Expr.lenient` is the earlier rule, for the fields of forms, which may be empty, and for the replay of runs
that were decided by it: a missing path gives false in every comparison but `== null`, and so do values
without an order.
"""

from __future__ import annotations

from holdfast.model.expressions.compile import MAX_DEPTH, MAX_LENGTH, Expr, compile_expr
from holdfast.model.expressions.errors import ExprSyntaxError
from holdfast.model.expressions.nodes import required_names
from holdfast.model.expressions.resolve import (
    PARTITIONS,
    Path,
    Resolve,
    mapping_resolver,
    nested_values,
    partition_resolver,
    walk,
)
from holdfast.model.expressions.values import MISSING, Missing, truthy

__all__ = [
    "MAX_DEPTH",
    "MAX_LENGTH",
    "MISSING",
    "PARTITIONS",
    "Expr",
    "ExprSyntaxError",
    "Missing",
    "Path",
    "Resolve",
    "compile_expr",
    "mapping_resolver",
    "nested_values",
    "partition_resolver",
    "required_names",
    "truthy",
    "walk",
]
