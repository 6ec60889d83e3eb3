"""What a package index shows: the version, and a README whose pictures and links lead somewhere."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version

import secure_bloom
from testing.project import PACKAGE, ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_version_is_that_of_the_installed_package() -> None:
    assert secure_bloom.__version__ == version("secure-bloom")


def _published_readme() -> str:
    """The README as the build puts it into the package's metadata."""
    hook = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = "".join((ROOT / part["path"]).read_text() for part in hook["fragments"])
    for change in hook["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    return text


def test_pictures_and_links_lead_out_of_a_package_index() -> None:
    files = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text())
    shown = re.findall(r"\]\(([^)#]+)\)", _published_readme())
    home = PYPROJECT["project"]["urls"]["Homepage"]
    raw = home.replace("//github.com/", "//raw.githubusercontent.com/") + "/main/"
    assert files
    assert shown == [
        (raw if file.startswith("docs/pictures/") else f"{home}/blob/main/") + file
        for file in files
    ]


def test_nobody_is_told_to_install_from_an_index_where_the_package_is_not() -> None:
    shown = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *PACKAGE.rglob("*.py")]
    # An extra of the installed package is another matter: pip finds its packages in the metadata.
    told = [path for path in shown if re.search(r"install \S*secure-bloom(?!\[)", path.read_text())]
    assert told == []
