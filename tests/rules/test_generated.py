"""What is committed is what the models give: CRDs, schemas for editors, pages. People and API servers read these files.

`scripts/check api` asks the same of the command; here a fault in a model or its table fails a test by its file.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gatewright.api.generate.__main__ import FOLDERS, PAGES, SECTIONS


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_files_of_a_folder_are_current(folder: str, root: Path) -> None:
    made = FOLDERS[folder]()
    differing = [name for name, text in made.items() if (root / folder / name).read_text() != text]
    assert differing == [], "run scripts/gen-api"
    others = {Path(page).name for page in PAGES if page.startswith(f"{folder}/")}
    assert {path.name for path in (root / folder).iterdir()} == made.keys() | others


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_current(page: str, root: Path) -> None:
    assert (root / page).read_text() == PAGES[page](), "run scripts/gen-api"


@pytest.mark.parametrize("page", SECTIONS)
def test_a_section_is_current(page: str, root: Path) -> None:
    text = (root / page).read_text()
    assert text == SECTIONS[page](text), "run scripts/gen-api"
    with pytest.raises(ValueError, match="has no place"):
        SECTIONS[page]("a page without the section")
