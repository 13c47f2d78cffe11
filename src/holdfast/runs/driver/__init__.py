"""Drives one claimed run: loads it, asks the engine, calls handlers, writes records, waits, parks."""
