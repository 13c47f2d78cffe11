"""The ledger agrees with the tests and with the reference pages; its tool does what docs/ledger says."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from bench.targets import TARGETS
from tools import ledger

HOLDS = "CP|AS|NO|RE|EX|RS|CA|RA|RC|RM|SK|FM|TP|HI|LI|MX"
PLATFORM = "CV|FL|SC|BP|TO|QB|QU|MB|BS|WB|IN"
REFERENCE_CODE = re.compile(
    rf"(D|G|R|RF|RS-[A-Z]+|AT|TD|SC2|{HOLDS}|{PLATFORM})-\d+|(AT-A|CP2-[A-Z])\d+|[EPQC]\d+b?"
)
BENCH = ledger.ROOT / "bench"
STORES = ("memory", "sqlite", "postgres", "mariadb")
SUFFIX = re.compile(r"-[a-z]+$")
# In one process, which parses all tests once.
READS_ALL_TESTS = pytest.mark.xdist_group("ledger")


@pytest.fixture(scope="module")
def entries():
    return ledger.entries_by_code(ledger.read_files())


@pytest.fixture(scope="module")
def marked_tests():
    return ledger.collect_tests()


@READS_ALL_TESTS
def test_ledger_names_only_tests_that_exist(entries, marked_tests):
    existing = {marked.test for marked in marked_tests}
    named = {test for entry in entries.values() for test in [*entry.tests, *entry.claimed]}
    assert named <= existing


@READS_ALL_TESTS
def test_tests_name_only_codes_of_the_ledger(entries, marked_tests):
    assert ledger.unknown_codes(marked_tests, entries) == []


def test_ledger_and_reference_pages_list_the_same_codes(entries):
    listed = {SUFFIX.sub("", code) for code in entries}
    assert {code for code in listed if REFERENCE_CODE.fullmatch(code)} == ledger.defined_codes()


def test_reference_pages_define_each_rule_without_a_gap():
    defined = ledger.defined_codes()
    expected = {f"D-{number}" for number in range(1, 40)} | {f"G-{number}" for number in range(1, 51)}
    assert expected <= defined


def test_crash_points_have_one_line_a_store(entries):
    page = (ledger.ROOT / "docs/reference/durability.md").read_text(encoding="utf-8")
    points = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    expected = {f"CRASH-{point}-{store}" for point in points for store in STORES}
    assert {code for code in entries if code.startswith("CRASH-")} == expected


def test_ledger_calls_a_line_done_exactly_when_a_test_proves_it(entries):
    assert [entry.code for entry in entries.values() if (entry.status == "done") != bool(entry.tests)] == []


def test_ledger_names_only_targets_that_the_benchmark_declares_and_measures(entries):
    named = {target for entry in entries.values() for target in entry.bench}
    assert named
    assert [name for name in sorted(named) if TARGETS[name].most is TARGETS[name].least] == []
    rows = "".join(path.read_text(encoding="utf-8") for path in BENCH.glob("*.py") if path.stem != "targets")
    assert [name for name in TARGETS if f'"{name}"' not in rows] == []


def test_sync_calls_a_line_measured_when_only_the_benchmark_judges_it(tree):
    file = tree / "docs/ledger/core.toml"
    file.write_text(LEDGER.replace('text = "one"\n', 'text = "one"\nbench = [\n    "A-memory",\n]\n'))
    ledger.sync(tree)
    assert state_of(tree)["D-1"] == ("measured", [])
    assert '"A-memory"' in file.read_text()
    write_test(tree, '@pytest.mark.covers("D-1")\ndef test_a(): ...\n')
    ledger.sync(tree)
    assert state_of(tree)["D-1"][0] == "done"


@READS_ALL_TESTS
def test_ledger_is_what_sync_would_write():
    files, _ = ledger.synced()
    assert [file.path.name for file in ledger.stale_files(files)] == [], "run: python tools/ledger.py sync"


# ---- the tool, on a small tree of its own

LEDGER = """# A ledger.

# ---- First

[D-1]
text = "one"
status = "open"
tests = []

# ---- Second

[D-2]
text = "two \\"quoted\\""
later = "holds"
status = "later:holds"
tests = []

[CRASH-after_claim-memory]
text = "dies"
status = "open"
tests = []
"""


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "docs/ledger").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "docs/ledger/core.toml").write_text(LEDGER)
    return tmp_path


def write_test(tree, source):
    (tree / "tests/test_x.py").write_text(source)


def state_of(tree):
    entries = ledger.entries_by_code(ledger.read_files(tree))
    return {code: (entry.status, entry.tests) for code, entry in entries.items()}


def test_sync_leaves_the_file_alone_when_nothing_is_marked(tree):
    ledger.sync(tree)
    assert (tree / "docs/ledger/core.toml").read_text() == LEDGER


def test_sync_reads_markers_wherever_they_may_stand(tree):
    write_test(
        tree,
        """
pytestmark = [pytest.mark.covers("D-2")]
@pytest.mark.covers("D-1")
class TestOne:
    def test_method(self): ...
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.covers("CRASH-*"))])
async def test_function(x): ...
""",
    )
    ledger.sync(tree)
    method, function = "tests/test_x.py::TestOne::test_method", "tests/test_x.py::test_function"
    assert state_of(tree) == {
        "D-1": ("done", [method]),
        "D-2": ("done", [method, function]),
        "CRASH-after_claim-memory": ("done", [function]),
    }


def test_sync_restores_the_file_when_its_tests_are_gone(tree):
    write_test(tree, '@pytest.mark.covers("D-1", "D-2")\ndef test_a(): ...\n')
    ledger.sync(tree)
    write_test(tree, "")
    ledger.sync(tree)
    assert (tree / "docs/ledger/core.toml").read_text() == LEDGER


def test_sync_counts_no_test_that_is_skipped(tree):
    write_test(tree, '@pytest.mark.skip\n@pytest.mark.covers("D-1")\ndef test_a(): ...\n')
    ledger.sync(tree)
    assert state_of(tree)["D-1"] == ("open", [])


def test_sync_writes_the_rest_and_complains_when_a_code_is_unknown(tree):
    write_test(tree, '@pytest.mark.covers("D-1", "D-99")\ndef test_a(): ...\n')
    with pytest.raises(ledger.LedgerError, match=r"test_a: D-99"):
        ledger.sync(tree)
    assert state_of(tree)["D-1"][0] == "done"


def test_sync_refuses_a_pattern_outside_the_crash_points(tree):
    write_test(tree, '@pytest.mark.covers("D-*")\ndef test_a(): ...\n')
    with pytest.raises(ledger.LedgerError, match=r"D-\*"):
        ledger.sync(tree)


def test_sync_refuses_a_marker_that_is_computed(tree):
    write_test(tree, '@pytest.mark.covers(f"D-{1}")\ndef test_a(): ...\n')
    with pytest.raises(ledger.LedgerError, match="plain strings"):
        ledger.sync(tree)


def test_check_fails_and_changes_nothing_when_the_ledger_is_behind(tree):
    write_test(tree, '@pytest.mark.covers("D-1")\ndef test_a(): ...\n')
    with pytest.raises(ledger.LedgerError, match="behind"):
        ledger.sync(tree, check=True)
    assert (tree / "docs/ledger/core.toml").read_text() == LEDGER


def test_claim_survives_a_sync_and_drops_parameters(tree):
    write_test(tree, "def test_a(): ...\n")
    ledger.claim(["D-1", "D-2", "tests/test_x.py::test_a[memory]"], tree)
    ledger.sync(tree)
    assert state_of(tree)["D-2"] == ("done", ["tests/test_x.py::test_a"])


@pytest.mark.parametrize(
    "words", [["D-1"], ["D-1", "tests/test_x.py::test_b"], ["D-9", "tests/test_x.py::test_a"]]
)
def test_claim_refuses_what_does_not_exist(tree, words):
    write_test(tree, "def test_a(): ...\n")
    with pytest.raises(ledger.LedgerError):
        ledger.claim(words, tree)
    assert (tree / "docs/ledger/core.toml").read_text() == LEDGER


def test_claims_at_the_same_time_all_arrive(tree):
    names = [f"test_{letter}" for letter in "abcdef"]
    write_test(tree, "".join(f"def {name}(): ...\n" for name in names))
    program = "import sys; from pathlib import Path; from tools import ledger; "
    program += "ledger.claim(['D-1', sys.argv[1]], Path(sys.argv[2]))"
    tests = [f"tests/test_x.py::{name}" for name in names]
    processes = [
        subprocess.Popen([sys.executable, "-c", program, test, str(tree)], cwd=ledger.ROOT) for test in tests
    ]
    assert [process.wait() for process in processes] == [0] * len(tests)
    assert state_of(tree)["D-1"] == ("done", tests)
