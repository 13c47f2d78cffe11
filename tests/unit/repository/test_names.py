"""`tools/names.py`, part of `make check`: what it finds, what it leaves alone, and that this tree passes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def names() -> ModuleType:
    spec = importlib.util.spec_from_file_location("names", ROOT / "tools/names.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["names"] = module
    spec.loader.exec_module(module)
    return module


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in {"src/holdfast/__init__.py": "", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for folder in path.parents:
            if folder.is_relative_to(root / "src/holdfast") and not (folder / "__init__.py").exists():
                (folder / "__init__.py").write_text("")
    return root


@pytest.mark.covers("PLAIN-NAME-01", "PLAIN-NAME-02", "PLAIN-NAME-04", "PLAIN-NAME-05", "PLAIN-SAME-06")
def test_this_tree_passes(names: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert names.main([]) == 0, capsys.readouterr().out


def test_a_check_that_there_is_not_is_named(names: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert names.main(["module"]) == 2
    assert "there are modules, classes, knots, docs, comments, words, errors" in capsys.readouterr().err


@pytest.mark.covers("PLAIN-NAME-01")
def test_gerunds_and_joined_names_are_found_in_modules(names: ModuleType, tmp_path: Path) -> None:
    files = [
        "runs/parking", "runs/park", "runs/scheduling/cron", "runs/timing/cron", "cli/dead__burying",
        "api/routing", "types/ring", "__main__",
    ]  # fmt: skip
    source = names.Source(tree(tmp_path, {f"src/holdfast/{name}.py": "" for name in files}))
    found = [(each.place, each.problem) for each in names.bad_modules(source)]
    assert found == [
        ("src/holdfast/cli/dead__burying.py:1", "dead__burying joins two names"),
        ("src/holdfast/runs/parking.py:1", "the module name parking is a gerund"),
        ("src/holdfast/runs/scheduling/__init__.py:1", "the package name scheduling is a gerund"),
    ]


@pytest.mark.covers("PLAIN-NAME-02")
def test_public_classes_of_one_name_are_found_outside_of_the_client(
    names: ModuleType, tmp_path: Path
) -> None:
    files = {
        "src/holdfast/a.py": "class Reply:\n    pass\n\nclass _Own:\n    pass\n",
        "src/holdfast/b/c.py": "X = 1\n\nclass Reply:\n    pass\n\nclass _Own:\n    pass\n",
        "src/holdfast/client/models.py": "class Reply:\n    pass\n",
    }
    (found,) = names.doubled_classes(names.Source(tree(tmp_path, files)))
    assert found.place == "src/holdfast/a.py:1"
    assert found.problem == "class Reply is defined also in src/holdfast/b/c.py:3"


@pytest.mark.covers("PLAIN-SAME-06")
def test_circles_are_counted_with_type_hints_and_imports_in_functions(
    names: ModuleType, tmp_path: Path
) -> None:
    files = {
        "src/holdfast/a.py": "from holdfast.b import f\n",
        "src/holdfast/b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import holdfast.c\n",
        "src/holdfast/c.py": "def f():\n    from holdfast import a\n",
        "src/holdfast/d.py": "from holdfast.a import f\n",
    }
    source = names.Source(tree(tmp_path, files))
    assert names.components(source.imports) == [["holdfast.a", "holdfast.b", "holdfast.c"]]
    assert list(names.large_knots(source, largest=3)) == []
    (found,) = names.large_knots(source, largest=2)
    assert "3 modules" in found.problem
    assert "holdfast.a, holdfast.b, holdfast.c" in found.problem


def test_a_circle_of_eleven_modules_is_the_largest_that_is_allowed(names: ModuleType, tmp_path: Path) -> None:
    def circle(size: int) -> dict[str, str]:
        return {f"src/holdfast/m{n}.py": f"import holdfast.m{(n + 1) % size}\n" for n in range(size)}

    assert list(names.large_knots(names.Source(tree(tmp_path / "eleven", circle(11))))) == []
    (found,) = names.large_knots(names.Source(tree(tmp_path / "twelve", circle(12))))
    assert "12 modules import each other in circles (at most 11)" in found.problem


def test_components_do_not_join_what_only_leads_to_a_circle(names: ModuleType) -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a", "e"}}
    assert sorted(names.components(edges)) == [["b", "c"], ["d", "e"]]


@pytest.mark.covers("PLAIN-NAME-05")
def test_pages_may_name_only_modules_and_files_that_exist(names: ModuleType, tmp_path: Path) -> None:
    files = {
        "src/holdfast/__init__.py": "class Flow: ...\n",
        "src/holdfast/runs/claim.py": "def claim(): ...\nSPAN = 'holdfast.run.started'\n",
        "tools/names.py": "",
        "docs/page.md": "`holdfast.runs.claim.claim`, `holdfast.Flow`, `holdfast.run.started`, holdfast.db,\n"
        "`src/holdfast/runs/claim.py`, tools/names.py, examples/NAME.py, ./holdfast.runs.x,\n"
        "`holdfast.runs.claiming`, `holdfast.house`\n"
        "and src/holdfast/runs/claiming.py.\n"
        "`runs/claim.py`, `runs/claim`, `runs/`, `runs/ID`, `other/claim.py`, /runs/settle,\n"
        "`runs/settle.py` and `runs/settle`\n",
        "docs/adr/0001-old.md": "`holdfast.runs.gone`\n",
        "CHANGELOG.md": "`holdfast.runs.gone`\n",
    }
    found = [str(each) for each in names.unknown_in_docs(names.Source(tree(tmp_path, files)))]
    assert found == [
        "docs/page.md:3: there is no holdfast.runs.claiming. Write the name that it has now.",
        "docs/page.md:3: there is no holdfast.house. Write the name that it has now.",
        "docs/page.md:4: there is no src/holdfast/runs/claiming.py. Write the path that it has now.",
        "docs/page.md:6: there is no runs/settle.py. Write the path that it has now.",
        "docs/page.md:6: there is no runs/settle. Write the path that it has now.",
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the house", True),
        ("open_house()", True),
        ("class OpenHouse:", True),
        ("HOUSE = 1", True),
        ("two houses", True),
        ("a warehouse", False),
        ("housekeeping", False),
        ('shape="house"', False),
        ("[shape=house]", False),
    ],
)
def test_a_word_is_found_as_a_word_and_inside_of_names(names: ModuleType, text: str, found: bool) -> None:
    assert bool(names.word_places(text, "house")) is found


@pytest.mark.covers("PLAIN-NAME-04")
def test_metaphors_and_whoever_are_found(names: ModuleType, tmp_path: Path) -> None:
    files = {"src/holdfast/a.py": "desk = 1\n# a desk, whoever sits there\n", "README.md": "whoever\n"}
    source = names.Source(tree(tmp_path, files))
    found = [str(each) for each in names.bad_words(source)]
    assert [line.split(". ")[0] for line in found] == [
        'src/holdfast/a.py:1: the word "desk"',
        'src/holdfast/a.py:2: the word "desk"',
        'src/holdfast/a.py:2: the word "whoever"',
        'README.md:1: the word "whoever"',
    ]


def test_told_is_found_as_a_name_and_not_in_sentences(names: ModuleType, tmp_path: Path) -> None:
    text = 'told = 1\n_told = {}\nlate_told, untold = 2, 3\n# what is told\nsaid = "told"\n'
    assert names.name_places(text, "told") == [1, 2, 3]
    source = names.Source(tree(tmp_path, {"src/holdfast/a.py": text}))
    found = [each.place for each in names.bad_words(source)]
    assert found == [f"src/holdfast/a.py:{line}" for line in (1, 2, 3)]


@pytest.mark.covers("PLAIN-WORD-05")
def test_messages_of_errors_that_begin_with_a_capital_are_found(names: ModuleType, tmp_path: Path) -> None:
    text = """
def closed():
    return StoreError("The store is closed.")

def check(name):
    if not name:
        raise InputError(f"A name {name!r} is empty.", hint="Give one.")
    if name == "x":
        raise errors.SettingsError("HOLDFAST_LOG is no level.")
    if name == "y":
        raise HttpError(400, "If-Match is not a version.")
    if name == "z":
        raise StoreError(f"Run {name} is gone.")
    raise InputError("the name is not known.")
"""
    source = names.Source(tree(tmp_path, {"src/holdfast/a.py": text}))
    assert sorted(each.place for each in names.bad_messages(source)) == [
        "src/holdfast/a.py:13",
        "src/holdfast/a.py:3",
        "src/holdfast/a.py:7",
    ]


@pytest.mark.covers("PLAIN-NAME-05")
def test_modules_that_comments_name_exist(names: ModuleType, tmp_path: Path) -> None:
    text = (
        '"""As `store.rows` and `store.rows.Row`; not `store.gone`, `config.x`, `store.json` or `row.x`."""\n'
        "# `store/rows`, `store/lost` and `src/main.py`\n"
    )
    files = {"src/holdfast/a.py": text, "src/holdfast/store/rows.py": "class Row:\n    pass\n"}
    found = [
        (each.place, each.problem) for each in names.unknown_in_source(names.Source(tree(tmp_path, files)))
    ]
    assert found == [
        ("src/holdfast/a.py:1", "there is no store.gone"),
        ("src/holdfast/a.py:2", "there is no store/lost"),
    ]
