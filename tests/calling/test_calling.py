"""A package's public names are imported when they are first asked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from secure_bloom.calling import lazy_names


def test_a_module_is_loaded_by_the_first_of_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "house_of_names"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "kitchen.py").write_text("spoon, fork = 1, 2\n")
    (package / "attic.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    find, names = lazy_names("house_of_names", {"kitchen": ["spoon", "fork"], "attic": []})
    assert names() == ["attic", "fork", "spoon"]
    assert "house_of_names.kitchen" not in sys.modules
    assert (find("spoon"), find("fork")) == (1, 2)
    assert find("attic").__name__ == "house_of_names.attic"
    with pytest.raises(AttributeError, match="'house_of_names' has no attribute 'kitchen'"):
        find("kitchen")
