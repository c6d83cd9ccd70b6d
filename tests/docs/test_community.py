"""The files for contributors parse, and agree with the package on version and licence."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SECTIONS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_citation_names_this_version_and_licence():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0" and citation["message"] and citation["title"]
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == PROJECT["authors"]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_issue_forms_have_what_the_site_asks_for(path):
    form = yaml.safe_load(path.read_text())
    if path.stem == "config":
        assert set(form) == {"blank_issues_enabled"}
        return
    assert form["name"] and form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields) > 1
    kinds = {"textarea", "input", "checkboxes", "dropdown"}
    assert all(field["type"] in kinds and field["attributes"]["label"] for field in fields)


def test_the_changelog_has_versions_and_the_usual_sections():
    text = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## \[(.+?)\] - (Unreleased|\d{4}-\d\d-\d\d)$", text, re.M)
    assert versions and len(versions) == text.count("\n## ")
    assert PROJECT["version"] in dict(versions)
    assert set(re.findall(r"^### (.+)$", text, re.M)) <= SECTIONS


def test_make_help_fits_into_a_terminal():
    lines = subprocess.check_output(["make", "-s", "help"], cwd=ROOT, text=True).splitlines()
    assert len(lines) > 20 and max(map(len, lines)) <= 80
    targets = [line for line in lines if line.startswith("make ")]
    assert all(re.match(r"make [a-z-]+ +\S", line) for line in targets)
    assert {line.rindex(re.split(r" +", line, maxsplit=2)[2]) for line in targets} == {20}
