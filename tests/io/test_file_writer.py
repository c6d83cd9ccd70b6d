"""The writer that replaces files, under all that can happen to it: src/io/file_writer.cc."""

import io
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import threading

import pytest

import taeda
from taeda import _C, safetensors

_CLONE_NEWNS, _MS_REC, _MS_PRIVATE, _MS_BIND, _MS_RDONLY, _MS_REMOUNT = (
    0x20000, 0x4000, 1 << 18, 0x1000, 1, 32,
)  # fmt: skip

# Makes mounts that only this process sees; exits with 77 where that is not permitted.
_MOUNTS = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def mount(source, target, kind, flags, options=None):
    if libc.mount(source.encode(), target.encode(), kind, flags, options):
        sys.exit(77)
if libc.unshare({_CLONE_NEWNS}):
    sys.exit(77)
mount("none", "/", None, {_MS_REC | _MS_PRIVATE})
"""


def run(program, *args):
    """Runs a program in a process of its own that imports taeda."""
    code = f"import taeda, os, signal, sys\nfolder = sys.argv[1]\n{program}"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, timeout=300
    )
    if done.returncode == 77:
        pytest.skip("no private mounts here")
    return done


def check(done):
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("nameless", [True, False])
def test_commit_replaces_and_close_drops(tmp_path, nameless):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    file = _C._FileWriter(path, nameless)
    file.write(b"ne")
    file.write(b"w")
    assert path.read_bytes() == b"old"
    file.close()
    assert os.listdir(tmp_path) == ["x"] and path.read_bytes() == b"old"
    with pytest.raises(ValueError, match="closed"):
        file.write(b"more")
    file = _C._FileWriter(path, nameless)
    file.write(b"new")
    file.commit()
    assert os.listdir(tmp_path) == ["x"] and path.read_bytes() == b"new"


@pytest.mark.parametrize("nameless", [True, False])
def test_permissions_are_kept_and_never_wider(tmp_path, nameless):
    secret, fresh = tmp_path / "secret", tmp_path / "fresh"
    secret.write_bytes(b"old")
    secret.chmod(0o600)
    umask = os.umask(0o027)
    try:
        for path in (secret, fresh):
            file = _C._FileWriter(path, nameless)
            file.write(b"new")
            if not nameless:
                hidden = [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]
                wanted = 0o600 if path == secret else 0o640
                assert stat.S_IMODE(os.stat(tmp_path / hidden[0]).st_mode) == wanted
            file.commit()
    finally:
        os.umask(umask)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o640


@pytest.mark.parametrize("save", ["save", "safetensors"])
def test_links_stay_links(tmp_path, save):
    folder = tmp_path / "there"
    folder.mkdir()
    link, second = tmp_path / "link", tmp_path / "second"
    link.symlink_to("there/x")  # to a file that is not there yet
    second.symlink_to(link)
    for _ in range(2):
        if save == "save":
            taeda.save(taeda.ones(2), second)
            assert taeda.load(folder / "x").tolist() == [1, 1]
        else:
            safetensors.save_file({"a": taeda.ones(2)}, second)
            assert safetensors.load_file(folder / "x")["a"].tolist() == [1, 1]
        assert link.is_symlink() and second.is_symlink() and os.listdir(folder) == ["x"]
    link.unlink()
    link.symlink_to("link")
    with pytest.raises(OSError, match="symbolic links"):
        taeda.save(1, second)


def test_errors_are_those_of_the_system(tmp_path):
    for name, error in (("", IsADirectoryError), ("x/", IsADirectoryError)):
        (tmp_path / "x").mkdir(exist_ok=True)
        with pytest.raises(error):
            taeda.save(1, f"{tmp_path}/{name}")
    with pytest.raises(ValueError, match="null"):
        taeda.save(1, f"{tmp_path}/a\0b")
    with pytest.raises(RuntimeError, match=r"Parent directory .*no does not exist"):
        safetensors.save_file({}, tmp_path / "no" / "x")
    with pytest.raises(FileNotFoundError):
        safetensors.load_file(tmp_path / "missing")
    with pytest.raises(OSError, match="File name too long"):
        taeda.save(1, tmp_path / ("n" * 300))
    taeda.save(1, tmp_path / ("n" * 255))
    assert taeda.load(tmp_path / ("n" * 255)) == 1


def test_what_others_left_is_told_apart(tmp_path):
    """Pipes, a user's files and files being written stay; what a killed writer left goes."""
    digits = "0123456789abcdef"
    pipe = tmp_path / f".x.taeda-{digits}.tmp"
    os.mkfifo(pipe)
    os.mkfifo(tmp_path / ".x.0123.tmp")
    kept = [".x.0123456789ab.tmp", ".x.notes.tmp", f".x.taeda-{digits[:-1]}.tmp",
            f".y.taeda-{digits}.tmp", f".x.taeda-{digits[:-1]}G.tmp"]  # fmt: skip
    for name in kept:
        (tmp_path / name).write_bytes(b"mine")
    target = tmp_path / "target"
    target.write_bytes(b"mine")
    (tmp_path / f".x.taeda-{digits[::-1]}.tmp").symlink_to(target)
    left = tmp_path / f".x.taeda-{digits[1:]}0.tmp"
    left.write_bytes(b"left by a killed process")
    busy = _C._FileWriter(tmp_path / "x", False)
    busy.write(b"unfinished")
    before = set(os.listdir(tmp_path))
    # In a process of its own: opening a pipe would wait for ever.
    check(run("taeda.save(taeda.ones(3), folder + '/x')", tmp_path))
    assert set(os.listdir(tmp_path)) == before - {left.name} | {"x"}
    assert target.read_bytes() == b"mine"
    busy.commit()
    assert (tmp_path / "x").read_bytes() == b"unfinished"


def test_a_pipe_is_written_directly(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = []
    reader = threading.Thread(target=lambda: content.append(pipe.read_bytes()))
    reader.start()
    x = taeda.arange(500_000.0)
    taeda.save(x, pipe)
    reader.join()
    assert taeda.equal(taeda.load(io.BytesIO(content[0])), x)
    assert os.listdir(tmp_path) == ["pipe"]


def test_ctrl_c_reaches_a_writer_that_waits(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    program = """
import threading
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)  # nobody reads: opening waits
try:
    taeda.save(1, folder + "/pipe")
except KeyboardInterrupt:
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.exit(5)
"""
    assert run(program, tmp_path).returncode == 5


# --- files that cannot be replaced by renaming ---


def test_a_mounted_file_is_overwritten(tmp_path):
    program = (
        _MOUNTS
        + f"""
open(folder + "/volume", "wb").write(b"x" * 100_000)  # longer than what follows
open(folder + "/x.pt", "wb").close()
mount(folder + "/volume", folder + "/x.pt", None, {_MS_BIND})
for n in (3, 50_000, 7):
    taeda.save(taeda.ones(n), folder + "/x.pt")
    assert taeda.load(folder + "/x.pt").numel() == n
    assert taeda.load(folder + "/volume").numel() == n
    assert sorted(os.listdir(folder)) == ["volume", "x.pt"]
taeda.safetensors.save_file({{"a": taeda.ones(2)}}, folder + "/x.pt")
assert taeda.safetensors.load_file(folder + "/volume")["a"].tolist() == [1, 1]
"""
    )
    check(run(program.replace("import ctypes", "import taeda.safetensors, ctypes"), tmp_path))


def test_a_killed_overwriting_leaves_the_new_file_beside(tmp_path):
    """Killed by the kernel for the size of the file, which only the second file reaches."""
    program = (
        _MOUNTS
        + f"""
import resource
open(folder + "/volume", "wb").close()
open(folder + "/x.pt", "wb").close()
mount(folder + "/volume", folder + "/x.pt", None, {_MS_BIND})
os.mkdir(folder + "/small")
mount("none", folder + "/small", b"tmpfs", 0, b"size=64k")
open(folder + "/small/volume", "wb").write(b"old")
open(folder + "/y.pt", "wb").close()
mount(folder + "/small/volume", folder + "/y.pt", None, {_MS_BIND})
try:
    taeda.save(taeda.ones(50_000), folder + "/y.pt")
except OSError as error:
    assert "No space left" in str(error), error
assert open(folder + "/y.pt", "rb").read() == b"old", "space is set aside first"
kept = [name for name in os.listdir(folder) if name.endswith(".new")]
assert len(kept) == 1 and taeda.load(folder + "/" + kept[0]).numel() == 50_000
taeda.save(taeda.ones(5), folder + "/y.pt")
assert taeda.load(folder + "/y.pt").numel() == 5
assert not [name for name in os.listdir(folder) if name.startswith(".")]
"""
    )
    check(run(program, tmp_path))


def test_a_file_in_a_folder_that_cannot_be_written(tmp_path):
    program = (
        _MOUNTS
        + f"""
os.mkdir(folder + "/fixed")
open(folder + "/fixed/x.pt", "wb").close()
open(folder + "/volume", "wb").close()
mount(folder + "/fixed", folder + "/fixed", None, {_MS_BIND})
mount("none", folder + "/fixed", None, {_MS_BIND | _MS_REMOUNT | _MS_RDONLY})
mount(folder + "/volume", folder + "/fixed/x.pt", None, {_MS_BIND})
for n in (3, 50_000, 7):
    taeda.save(taeda.ones(n), folder + "/fixed/x.pt")
    assert taeda.load(folder + "/volume").numel() == n
try:
    taeda.save(1, folder + "/fixed/new.pt")
except OSError as error:
    assert "Read-only" in str(error)
else:
    sys.exit("no error")
"""
    )
    check(run(program, tmp_path))


def test_a_full_disk_leaves_the_old_file(tmp_path):
    program = (
        _MOUNTS
        + """
import taeda.safetensors
mount("none", folder, b"tmpfs", 0, b"size=256k")
x = taeda.ones(100_000)
for save, load in ((taeda.save, taeda.load),
                   (lambda x, path: taeda.safetensors.save_file({"x": x}, path),
                    lambda path: taeda.safetensors.load_file(path)["x"])):
    save(taeda.ones(3), folder + "/x")
    before = open(folder + "/x", "rb").read()
    try:
        save(x, folder + "/x")
    except OSError as error:
        assert "No space left" in str(error) and error.errno == 28
    else:
        sys.exit("no error")
    assert open(folder + "/x", "rb").read() == before and os.listdir(folder) == ["x"]
    save(taeda.ones(4), folder + "/x")
    assert load(folder + "/x").numel() == 4
"""
    )
    check(run(program, tmp_path))


# --- death while saving ---

_SAVE_FOREVER = """
import taeda.safetensors
kind, path, nameless = sys.argv[2], folder + "/x", sys.argv[3] == "1"
from taeda import _C
if not nameless:
    real = _C._FileWriter
    _C._FileWriter = lambda path: real(path, False)
values = [taeda.full((200_000,), float(i)) for i in range(8)]
for i in range(10**9):
    if i == 1:
        print("ready", flush=True)
    x = values[i % 8]
    if kind == "save":
        taeda.save({"x": x, "again": x.clone()}, path)
    else:
        taeda.safetensors.save_file({"x": x, "again": x.clone()}, path)
"""


def kill_while_saving(folder, kind, nameless, rng):
    """Kills a process that saves again and again; the values in the file must be of one save."""
    code = f"import taeda, os, signal, sys\nfolder = sys.argv[1]\n{_SAVE_FOREVER}"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder), kind, str(int(nameless))], stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"ready\n"
    try:
        process.wait(rng.uniform(0, 0.2))
    except subprocess.TimeoutExpired:
        pass
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    back = (taeda.load if kind == "save" else safetensors.load_file)(os.path.join(folder, "x"))
    assert taeda.equal(back["x"], back["again"]) and back["x"].unique().numel() == 1
    left = [name for name in os.listdir(folder) if name != "x"]
    assert len(left) <= 1  # the next writer removes it
    return bool(left)


@pytest.mark.parametrize("kind, nameless", [("save", True), ("save", False), ("file", True)])
def test_killed_at_random_points(tmp_path, kind, nameless):
    rng = random.Random(0)
    for _ in range(4):
        kill_while_saving(tmp_path, kind, nameless, rng)
    taeda.save(taeda.ones(1), tmp_path / "x")
    assert os.listdir(tmp_path) == ["x"]


# --- objects with write() ---


def test_short_writes_are_continued(tmp_path):
    class Short(io.RawIOBase):
        content = b""

        def write(self, data):
            self.content += bytes(data[:1000])
            return min(len(data), 1000)

    class Silent:
        content = b""

        def write(self, data):
            self.content += bytes(data)

    x = {"a": taeda.arange(70_000.0), "b": taeda.ones(3)}
    for file in (Short(), Silent()):
        taeda.save(x, file)
        assert taeda.equal(taeda.load(io.BytesIO(file.content))["a"], x["a"])
    with open(tmp_path / "raw", "wb", buffering=0) as file:
        taeda.save(x, file)
    assert taeda.load(tmp_path / "raw")["b"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("answer", [0, -1, 10**9])
def test_writes_that_lie_raise(answer):
    class Liar:
        def write(self, data):
            return answer

    with pytest.raises(OSError, match="took"):
        taeda.save(taeda.ones(3), Liar())


def test_a_file_that_would_block_raises():
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        with open(write, "wb", buffering=0) as file, pytest.raises(BlockingIOError):
            taeda.save(taeda.ones(100_000), file)
    finally:
        os.close(read)


# --- values that others change meanwhile ---


def test_values_may_change_while_they_are_saved(tmp_path):
    x = taeda.zeros(300_000)

    class Meddler:
        content = b""

        def write(self, data):
            x.add_(1)
            self.content += bytes(data)
            x.add_(1)

    file = Meddler()
    taeda.save([x, taeda.ones(300_000)], file)
    assert taeda.load(io.BytesIO(file.content))[0].numel() == 300_000

    stop = threading.Event()

    def change():
        while not stop.is_set():
            x.add_(1)

    threads = [threading.Thread(target=change) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(6):
            taeda.save(x, tmp_path / "x.pt")
            taeda.load(tmp_path / "x.pt")
            safetensors.save_file({"x": x}, tmp_path / "x.safetensors")
            safetensors.load_file(tmp_path / "x.safetensors")
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_storage_that_changes_its_size_is_noticed():
    x, y = taeda.ones(300_000), taeda.ones(300_000)

    class Shrinker:
        def write(self, data):
            y.untyped_storage().resize_(4)

    with pytest.raises(RuntimeError, match="changed its size"):
        taeda.save([x, y], Shrinker())
    with pytest.raises(RuntimeError, match=r"save: a tensor of size .* its storage has 4"):
        taeda.save(y, io.BytesIO())


def test_bools_are_saved_as_0_and_1(tmp_path):
    np = pytest.importorskip("numpy")
    mask = taeda.from_numpy(np.array([0, 255, 1, 2], np.uint8).view(np.bool_))
    file = io.BytesIO()
    taeda.save(mask, file)
    file.seek(0)
    assert taeda.load(file).tolist() == [False, True, True, True]
    assert safetensors.load(safetensors.save({"m": mask}))["m"].tolist() == [
        False,
        True,
        True,
        True,
    ]


def test_the_file_size_limit_is_an_error(tmp_path):
    path = tmp_path / "x.safetensors"
    safetensors.save_file({"x": taeda.ones(3)}, path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            safetensors.save_file({"x": taeda.ones(100_000)}, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert safetensors.load_file(path)["x"].tolist() == [1, 1, 1]
    assert os.listdir(tmp_path) == [path.name]
