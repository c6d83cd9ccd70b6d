"""torch.hub: folders, archives of repositories, files by address."""

import hashlib
import io
import zipfile
from pathlib import Path

import pytest

import taeda
from taeda import hub

HUBCONF = '''
dependencies = ["zipfile"]
import helper
def scaled(x, by=2):
    """Scales."""
    return helper.times(x, by)
def _hidden(): ...
NUMBER = 3
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "hubconf.py").write_text(HUBCONF)
    (tmp_path / "repo" / "helper.py").write_text("def times(x, by):\n    return x * by\n")
    return tmp_path / "repo"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "_hub_dir", None)
    hub.set_dir(tmp_path / "cache")
    yield tmp_path / "cache"
    hub._hub_dir = None


@pytest.fixture
def repository(folder, cache, monkeypatch):
    """github.com/someone/things, as a file."""
    archive = folder.parent / "main.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.mkdir("things-main")
        for name in ("hubconf.py", "helper.py"):
            zipped.write(folder / name, f"things-main/{name}")
    monkeypatch.setattr(hub, "_git_archive_link", lambda *_: archive.as_uri())
    return "someone/things:main"


def test_load_from_a_folder(folder):
    assert hub.load(folder, "scaled", 3, by=5, source="local") == 15
    for model in ("_missing", "NUMBER"):
        with pytest.raises(RuntimeError, match=f"Cannot find callable {model} in hubconf"):
            hub.load(folder, model, source="local")
    with pytest.raises(ValueError, match='Unknown source: "ftp"'):
        hub.load(folder, "scaled", source="ftp")
    with pytest.raises(ValueError, match="should be a string"):
        hub.load(folder, 3, source="local")


def test_missing_dependencies(folder):
    (folder / "hubconf.py").write_text("dependencies = ['no_such_thing']\ndef f(): ...\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_thing"):
        hub.load(folder, "f", source="local")


def test_repositories(repository, cache, capsys):
    options = {"trust_repo": True, "skip_validation": True}
    assert hub.list(repository, **options) == ["scaled"]
    assert "Downloading" in capsys.readouterr().out
    assert hub.help(repository, "scaled", **options) == "Scales."
    assert hub.load(repository, "scaled", 4, verbose=False, **options) == 8
    assert (cache / "trusted_list").read_text() == "someone_things\n"
    assert (cache / "someone_things_main" / "hubconf.py").exists()
    assert hub.load(repository, "scaled", 4, force_reload=True, **options) == 8


@pytest.mark.parametrize(
    ("answer", "error"), [("n", Exception), ("", Exception), ("maybe", ValueError), ("y", None)]
)
def test_unknown_repositories_are_asked_about(repository, monkeypatch, answer, error):
    monkeypatch.setattr("builtins.input", lambda text: answer)
    if error is None:
        assert hub.load(repository, "scaled", 4, skip_validation=True) == 8
        return
    with pytest.raises(error, match=r"Untrusted|Unrecognized"):
        hub.load(repository, "scaled", 4, skip_validation=True)


def test_commits_of_forks_are_refused(repository, monkeypatch):
    pages = [[{"name": "v1", "commit": {"sha": "abc"}}], []] * 2
    monkeypatch.setattr(hub, "_ask_github", lambda url: pages.pop(0))
    with pytest.raises(ValueError, match=r"Cannot find main in https://github.com/someone/things"):
        hub.load(repository, "scaled", trust_repo=True)


@pytest.mark.parametrize("name", ["../evil", "/evil", "C:/evil", "a/../../evil"])
def test_archives_stay_in_their_folder(name, tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        zipped.writestr(name, "x")
        with pytest.raises(ValueError, match="Archive entry"):
            hub._safe_extract_zip(zipped, str(tmp_path / "in"))
    assert not list(tmp_path.rglob("evil"))


def test_weights_by_address(tmp_path, cache):
    weights = {"w": taeda.arange(5.0)}
    taeda.save(weights, tmp_path / "raw.pt")
    digest = hashlib.sha256((tmp_path / "raw.pt").read_bytes()).hexdigest()
    good, bad = (tmp_path / f"m-{h}.pt" for h in (digest[:8], "0" * 8))
    for path in (good, bad):
        (tmp_path / "raw.pt").replace(path) if path == good else path.write_bytes(good.read_bytes())
    loaded = taeda.hub.load_state_dict_from_url(good.as_uri(), check_hash=True, progress=False)
    assert taeda.equal(loaded["w"], weights["w"])
    assert (cache / "checkpoints" / good.name).exists()
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.load_state_dict_from_url(bad.as_uri(), check_hash=True, progress=False)
    assert [p.name for p in (cache / "checkpoints").iterdir()] == [good.name]
    good.unlink()  # the copy stays
    from taeda.utils.model_zoo import load_url

    assert taeda.equal(load_url(good.as_uri())["w"], weights["w"])


def test_weights_in_a_zip_file(tmp_path, cache):
    taeda.save({"w": taeda.ones(2)}, tmp_path / "w.pt")
    with zipfile.ZipFile(tmp_path / "packed.pth", "w") as zipped:
        zipped.write(tmp_path / "w.pt", "inner.pt")
    with pytest.warns(FutureWarning, match="old format"):
        loaded = hub.load_state_dict_from_url((tmp_path / "packed.pth").as_uri(), progress=False)
    assert loaded["w"].tolist() == [1.0, 1.0]


def test_folders_follow_the_environment(monkeypatch):
    monkeypatch.setattr(hub, "_hub_dir", None)
    monkeypatch.delenv("TORCH_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert hub.get_dir() == "/somewhere/torch/hub"
    monkeypatch.setenv("TORCH_HOME", "~/there")
    assert Path(hub.get_dir()) == Path.home() / "there" / "hub"
