"""Run the tutorials, which are notebooks, and keep what they show.

python tools/run_notebooks.py                 run all, and write their outputs into their files
python tools/run_notebooks.py --check FILE …  run these, and write nothing: status 1 if a cell fails
                                              or its words differ from those in the file

Each notebook runs in its own empty folder.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "tutorials"
SECONDS = 600


def executed(path: Path) -> Any:
    """Run all cells of a notebook in order, in a new kernel, and return the notebook."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=place).execute()
    return notebook


def stripped(notebook: Any) -> Any:
    """Remove everything that differs between runs from the notebook."""
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for number, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{number}", {}
        if cell.cell_type == "code":
            cell.outputs = [each for each in cell.outputs if not _is_volatile(each)]
            for output in cell.outputs:
                data = output.get("data", {})
                if "text/html" in data:  # the `repr` may contain paths of this machine
                    data.pop("text/plain", None)
    return notebook


def _is_volatile(output: Any) -> bool:
    """Tell whether an output is a progress bar, or was written to standard error."""
    return output.get("name") == "stderr" or "<progress" in output.get("data", {}).get(
        "text/html", ""
    )


def words(notebook: Any) -> list[list[str]]:
    """Return the text that each cell shows, without pictures."""
    return [
        [output.get("text") or _without_pictures(output.data) for output in cell.get("outputs", [])]
        for cell in notebook.cells
    ]


def _without_pictures(data: Any) -> str:
    if "text/html" in data:
        return re.sub(r"<svg.*?</svg>|<img [^>]*>", "", data["text/html"], flags=re.DOTALL)
    return str(data.get("text/plain", ""))


def main(arguments: list[str] | None = None) -> int:
    """Run the notebooks and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("files", nargs="*", type=Path)
    given = parser.parse_args(arguments)

    import nbformat
    from nbclient.exceptions import CellExecutionError

    for path in given.files or sorted(FOLDER.glob("*.ipynb")):
        try:
            notebook = executed(path)
        except CellExecutionError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            return 1
        bars = sum(
            "<progress" in output.get("data", {}).get("text/html", "")
            for cell in notebook.cells
            for output in cell.get("outputs", [])
        )
        print(f"{path.name}: {len(notebook.cells)} cells, {bars} bars of progress")
        notebook = stripped(notebook)
        if not given.check:
            nbformat.write(notebook, path)
            continue
        kept = words(nbformat.read(path, as_version=4))
        for number, (old, new) in enumerate(zip(kept, words(notebook), strict=True)):
            if old != new:
                print(f"{path.name}: cell {number} shows {new}, not {old}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
