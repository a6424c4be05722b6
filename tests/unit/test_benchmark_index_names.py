"""The count of wrongly merged pages counts what it says."""

from pathlib import Path

from benchmarks.index_names import counted


def _tree(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def test_folders_with_index_files(tmp_path: Path) -> None:
    tree = _tree(tmp_path, {
        "index.html": "<a href='a/'>1</a><a href=d/#x>2</a>", "index.htm": "<a href='a/'>1</a><a href=d/#x>2</a>",
        "a/index.html": "1", "a/Index.html": "2", "b/index.html": "1", "b/page.html": "2", "c/Default.htm": "1",
        "d/index.jsp": "1", "e/readme.txt": "", "f/INDEX.HTM": "1", "f/index.php": "1",
    })  # fmt: skip
    assert counted(tree, few=False) == {
        "folders": 7, "pages": 10, "with an index file": 6, "with two that differ": 1,
        "with one that is not served for the folder": 2, "and a link to the folder": 1,
    }  # fmt: skip
    assert counted(tree, few=True) == {"folders": 7, "pages": 9, "with an index file": 4}
