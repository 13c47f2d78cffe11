"""The torture of a fleet: real workers on a real server, everything that can go wrong, and a judge.

`python -m tests.fleet.torture --minutes 5 --seed 7 --report report.md` runs it;
`docs/explanation/fleet-tests.md` says what it does and how its report is read.
"""
