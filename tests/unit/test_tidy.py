"""The house rules that a machine can see, checked as a unit test."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("schemas", "streams", "projections", "api", "evenhand")
GENERATED = {ROOT / "schemas" / name for name in ("inputs.py", "events.py", "entry.py", "wire.py")}
FILE_LINES_MAX = 300
FUNCTION_LINES_MAX = 60
UNFINISHED = ("TODO", "FIXME", "XXX", "NotImplementedError")


def sources(*roots: str) -> list[Path]:
    found = [p for root in roots for p in sorted((ROOT / root).rglob("*.py"))]
    return [path for path in found if path not in GENERATED]


EVERYTHING = sources(*PACKAGES, "tests")


def test_no_file_is_longer_than_a_reader_can_hold():
    long = {str(p): n for p in EVERYTHING if (n := p.read_text().count("\n")) > FILE_LINES_MAX}
    assert long == {}


def test_every_function_fits_the_eye():
    long = []
    for path in EVERYTHING:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    long.append(f"{path.name}:{node.lineno} {node.name} has {lines}")
    assert long == []


def test_every_module_begins_with_the_sentence_that_justifies_it():
    silent = [
        str(path)
        for path in EVERYTHING
        if path.read_text().strip() and ast.get_docstring(ast.parse(path.read_text())) is None
    ]
    assert silent == []


@pytest.mark.parametrize("word", UNFINISHED)
def test_nothing_is_left_unfinished(word):
    assert [str(p) for p in sources(*PACKAGES) if word in p.read_text()] == []


def test_no_module_is_dead():
    """Each module is imported by another one, or is where a program starts."""
    starts = {"__init__", "__main__", "testing"}
    text = {path: path.read_text() for path in EVERYTHING}
    dead = []
    for path in sources(*PACKAGES):
        name = path.stem
        others = (body for other, body in text.items() if other != path)
        if name not in starts and not any(name in body for body in others):
            dead.append(str(path))
    assert dead == []


def test_only_the_empty_init_files_of_packages_export_nothing():
    full = [
        str(path)
        for path in sources("schemas", "streams", "projections", "api")
        if path.name == "__init__.py" and path.read_text().strip()
    ]
    assert full == []


@pytest.mark.parametrize("folder", ["streams/shell", "projections", "api", "evenhand"])
def test_the_tree_in_the_architecture_names_every_module_and_none_that_is_gone(folder):
    """A module stands on a line of its own below its folder, one step further in."""
    lines = (ROOT / "docs" / "architecture.md").read_text().splitlines()
    name = folder.rpartition("/")[2] + "/"
    first = next(n for n, line in enumerate(lines) if line.split()[:1] == [name])
    depth = len(lines[first]) - len(lines[first].lstrip()) + 2
    named = []
    for line in lines[first + 1 :]:
        if len(line) - len(line.lstrip()) != depth:
            break
        named.append(line.split()[0])
    modules = {path.name for path in (ROOT / folder).glob("*.py")} - {"__init__.py"}
    assert sorted(one for one in named if one.endswith(".py")) == sorted(modules)
