"""Leaf records: ids, statuses, values, journal records, holds, events, time. Stdlib and msgspec only."""
