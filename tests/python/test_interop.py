"""NumPy, DLPack and the buffer protocol: memory is shared both ways, and freed once."""

import array
import ctypes
import gc
import sys
import threading
import weakref

import pytest

import taeda as torch

np = pytest.importorskip("numpy")

NUMPY_TYPES = (
    "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
)


class Array(np.ndarray):
    """An ndarray that weak references can watch."""


def watched(values, dtype="float32"):
    data = np.array(values, dtype=dtype).view(Array)
    return data, weakref.ref(data)


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_from_numpy_and_back(name):
    source = np.array([[0, 1, 1], [1, 0, 1]], dtype=name)
    x = torch.from_numpy(source)
    assert x.dtype is getattr(torch, name)
    assert x.tolist() == source.tolist()
    back = x.numpy()
    assert back.dtype == source.dtype
    assert back.ctypes.data == source.ctypes.data
    source[0, 0] = 1
    assert x[0, 0].item() == 1
    assert back[0, 0] == 1


def test_array_lives_as_long_as_its_tensors():
    data, ref = watched([1, 2, 3])
    x = torch.from_numpy(data)
    del data
    gc.collect()
    assert ref() is not None
    view = x[1:]
    del x
    gc.collect()
    assert view.tolist() == [2.0, 3.0]
    assert ref() is not None
    del view
    gc.collect()
    assert ref() is None


def test_tensor_lives_as_long_as_its_arrays():
    data, ref = watched([1, 2, 3])
    x = torch.from_numpy(data)
    a = x.numpy()
    b = a[1:]
    del data, x, a
    gc.collect()
    assert b.tolist() == [2.0, 3.0]
    assert ref() is not None
    del b
    gc.collect()
    assert ref() is None


@pytest.mark.parametrize(
    "make",
    [
        lambda a: a[::2],
        lambda a: a.T,
        lambda a: a[:, 1:3],
        lambda a: np.broadcast_to(a[:1], (3, 4)),
        lambda a: a[:0],
        lambda a: a[0, 0, ...],
        lambda a: np.asfortranarray(a),
    ],
)
@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
def test_strides(make):
    source = make(np.arange(12.0).reshape(3, 4))
    x = torch.from_numpy(source)
    assert x.tolist() == source.tolist()
    assert tuple(x.shape) == source.shape
    again = x.numpy()
    assert again.tolist() == source.tolist()
    assert np.shares_memory(again, source) or source.size == 0


def test_refused_arrays():
    base = np.arange(6.0)
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(base[::-1])
    with pytest.raises(ValueError, match="byte order"):
        torch.from_numpy(base.astype(">f8"))
    odd = np.zeros(3, dtype=[("a", "f4"), ("b", "i1")])["a"]
    with pytest.raises(ValueError, match="multiple of the element"):
        torch.from_numpy(odd)
    for bad in (np.array(["a"]), np.array([object()]), np.array([1], dtype="m8[s]"),
                np.array([1], dtype="f16"), np.zeros(2, dtype="f4,i4")):  # fmt: skip
        with pytest.raises(TypeError, match="can't convert"):
            torch.from_numpy(bad)
    with pytest.raises(TypeError, match="expected np"):
        torch.from_numpy([1, 2])


def test_reference_counts_after_refusals():
    base = np.arange(6.0)
    before = sys.getrefcount(base)
    for _ in range(10):
        with pytest.raises(ValueError):
            torch.from_numpy(base[::-1])
    assert sys.getrefcount(base) == before


def test_numpy_of_tensors_that_require_grad_under_no_grad():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.no_grad():
        array = x.numpy()
        array[0] = 5
        assert np.asarray(x).tolist() == np.array(x).tolist() == [5, 2]
    assert x.tolist() == [5, 2] and x.requires_grad
    with torch.inference_mode():
        assert (x * 2).numpy().tolist() == [10, 4]


def test_numpy_of_refused_tensors():
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.tensor([1.0], requires_grad=True).numpy()
    assert torch.tensor([1.0], requires_grad=True).numpy(force=True).tolist() == [1.0]
    with pytest.raises(TypeError, match="BFloat16"):
        torch.tensor([1.0], dtype=torch.bfloat16).numpy()
    with pytest.raises(TypeError, match="meta"):
        torch.tensor([1.0], device="meta").numpy()


def test_array_protocol():
    x = torch.tensor([1.5, 2.5])
    assert np.asarray(x).ctypes.data == x.data_ptr()
    assert np.array(x).ctypes.data != x.data_ptr()
    assert np.asarray(x, dtype="int64").tolist() == [1, 2]
    assert isinstance(np.sin(x.numpy()), np.ndarray)


def test_exported_storage_does_not_move():
    x = torch.tensor([1.0, 2.0])
    a = x.numpy()
    with pytest.raises(RuntimeError, match="resizable"):
        x.untyped_storage().resize_(1 << 20)
    assert a.tolist() == [1.0, 2.0]


def test_dlpack_both_ways():
    source = np.arange(6, dtype="int32").reshape(2, 3)
    x = torch.from_dlpack(source)
    assert x.dtype is torch.int32
    source[0, 0] = 9
    assert x[0, 0].item() == 9
    y = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    back = np.from_dlpack(y.T)
    assert back.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    back[0, 1] = 7.0
    assert y[1, 0].item() == 7.0
    assert y.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_dlpack_frees_once(version):
    data, ref = watched([1, 2])
    x = torch.from_numpy(data)
    capsule = x.__dlpack__(max_version=version)
    del data, x
    y = torch.from_dlpack(capsule)
    del capsule
    gc.collect()
    assert y.tolist() == [1.0, 2.0]
    assert ref() is not None
    del y
    gc.collect()
    assert ref() is None


def test_unused_capsule_frees():
    data, ref = watched([1, 2])
    capsule = torch.from_numpy(data).__dlpack__()
    del data
    gc.collect()
    assert ref() is not None
    del capsule
    gc.collect()
    assert ref() is None


def test_capsule_is_used_once():
    capsule = torch.tensor([1.0]).__dlpack__()
    torch.from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="only once"):
        torch.from_dlpack(capsule)


def test_dlpack_array_is_freed():
    data, ref = watched([1, 2, 3])
    x = torch.from_dlpack(data)
    del data
    gc.collect()
    assert x.tolist() == [1.0, 2.0, 3.0]
    del x
    gc.collect()
    assert ref() is None


def test_dlpack_refusals():
    with pytest.raises(BufferError, match="gradient"):
        torch.tensor([1.0], requires_grad=True).__dlpack__()
    with pytest.raises(RuntimeError, match="invalid capsule"):
        torch.from_dlpack([1])
    with pytest.raises((BufferError, RuntimeError, TypeError)):
        torch.from_dlpack(np.array(["a"]))


class DLManagedTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),  # code, bits, lanes (two bytes)
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


def float_capsule(sizes, strides=None):
    """A capsule of float32 and what must outlive it."""
    n = len(sizes)
    array_of = ctypes.c_int64 * n
    memory = (ctypes.c_float * 8)()
    managed = DLManagedTensor(
        ctypes.addressof(memory), (1, 0), n, (2, 32, 1, 0), array_of(*sizes),
        strides and array_of(*strides), 0, None, None,
    )  # fmt: skip
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(ctypes.addressof(managed), b"dltensor", None), (managed, memory)


@pytest.mark.parametrize(
    "sizes, strides",
    [([1 << 62, 8], None), ([1 << 62], [1]), ([3, 3], [1 << 62, 1]), ([1 << 61, 0, 8], None)],
)
def test_dlpack_sizes_that_overflow(sizes, strides):
    capsule, _keep = float_capsule(sizes, strides)
    with pytest.raises(BufferError, match="overflow"):
        torch.from_dlpack(capsule)


# What a producer may get wrong, as (field, value), for a float32 tensor of 2 x 3 elements.
WRONG_CAPSULES = [
    ("data", None),
    ("shape", None),
    ("ndim", -1),
    ("ndim", 65),
    ("ndim", 2**31 - 1),
    ("device", (1, -1)),
    ("device", (4, 0)),
    ("device", (0, 0)),
    ("dtype", (2, 32, 2, 0)),
    ("dtype", (2, 32, 0, 0)),
    ("dtype", (2, 32, 0, 1)),
    ("dtype", (2, 0, 1, 0)),
    ("dtype", (2, 24, 1, 0)),
    ("dtype", (9, 32, 1, 0)),
    ("dtype", (255, 255, 255, 255)),
    ("byte_offset", 2**64 - 8),
    ("byte_offset", 2**63),
    ("shape", (-2, 3)),
    ("shape", (2, -3)),
    ("shape", (-(2**63), 0)),
    ("strides", (-3, 1)),
    ("strides", (3, -(2**63))),
    ("strides", (2**62, 1)),
]


@pytest.mark.parametrize("field, value", WRONG_CAPSULES)
def test_dlpack_descriptions_that_cannot_be(field, value):
    capsule, keep = float_capsule([2, 3], [3, 1])
    if field in ("shape", "strides"):
        value = value and (ctypes.c_int64 * 2)(*value)
    elif isinstance(value, tuple):
        value = type(getattr(keep[0], field))(*value)
    setattr(keep[0], field, value)
    with pytest.raises(BufferError, match="from_dlpack"):
        torch.from_dlpack(capsule)
    with pytest.raises(BufferError):  # the capsule is as it was
        torch.from_dlpack(capsule)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_dlpack_memory_of_a_device_that_is_not_there():
    capsule, keep = float_capsule([2], [1])
    keep[0].device = type(keep[0].device)(2, 0)
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.from_dlpack(capsule)


def test_dlpack_pinned_memory_is_the_cpus():
    capsule, keep = float_capsule([2], [1])
    keep[0].device = type(keep[0].device)(3, 0)
    assert torch.from_dlpack(capsule).device == torch.device("cpu")


# Arguments of the protocol, the outcome compared with PyTorch's.
PROTOCOL = """
x.__dlpack__(stream=-1)
x.__dlpack__(stream=None)
x.__dlpack__(stream=1)
x.__dlpack__(stream="a")
x.__dlpack__(stream=True)
x.__dlpack__(dl_device=(1, 0))
x.__dlpack__(dl_device=(1, 5))
x.__dlpack__(dl_device=(99, 0))
x.__dlpack__(dl_device=1)
x.__dlpack__(dl_device=(2, 0), copy=False)
x.__dlpack__(copy=True)
x.__dlpack__(copy=1)
x.__dlpack__(max_version=(0, 8))
x.__dlpack__(max_version=(1, 0))
x.__dlpack__(max_version=(1,))
x.__dlpack__(max_version="1")
x.__dlpack__(None)
x.__dlpack_device__()
meta.__dlpack_device__()
meta.__dlpack__()
torch.from_dlpack(x, device="cpu").data_ptr() == x.data_ptr()
torch.from_dlpack(x, device="cuda")
torch.from_dlpack(x, device="meta")
torch.from_dlpack(x, device=0)
torch.from_dlpack(x, copy=True).data_ptr() == x.data_ptr()
torch.from_dlpack(x, copy=False).data_ptr() == x.data_ptr()
torch.from_dlpack(np.arange(3), copy=True)
torch.from_dlpack(np.arange(3), copy=False)
torch.from_dlpack(np.arange(3), device="cpu")
torch.from_dlpack(x.__dlpack__(), copy=True)
torch.from_dlpack(x.__dlpack__(), device="cpu")
torch.from_dlpack(3)
torch.from_dlpack(x, nope=0)
torch.from_dlpack()
torch.from_dlpack(ext_tensor=x)
torch.from_dlpack(grad)
grad.__dlpack__()
torch.from_dlpack(torch.utils.dlpack.to_dlpack(grad))
torch.utils.dlpack.to_dlpack(3)
torch.utils.dlpack.DLDeviceType(2)
""".strip().splitlines()


@pytest.mark.parametrize("call", PROTOCOL)
def test_dlpack_protocol_as_in_pytorch(call):
    oracle = pytest.importorskip("torch")

    def outcome(package):
        names = {"torch": package, "np": np, "x": package.arange(3.0)}
        names["meta"] = package.empty(2, device="meta")
        names["grad"] = package.ones(2, requires_grad=True)
        try:
            return repr(eval(call, names)).partition(" at 0x")[0]
        except Exception as error:
            return type(error)

    assert outcome(torch) == outcome(oracle)


def test_dlpack_of_nothing_needs_no_memory():
    capsule, keep = float_capsule([2, 0], [-5, 1 << 62])
    keep[0].data = None
    x = torch.from_dlpack(capsule)
    assert x.shape == (2, 0) and x.stride() == torch.empty(2, 0).stride()
    capsule, _keep = float_capsule([1, 3], [-7, 1])
    assert torch.from_dlpack(capsule).expand(4, 3).sum() == 0


@pytest.mark.parametrize("sizes", [[], [3], [2, 3], [2, 0, 3]])
def test_dlpack_without_strides_is_row_major(sizes):
    capsule, _keep = float_capsule(sizes)
    x = torch.from_dlpack(capsule)
    assert x.size() == torch.Size(sizes) and x.is_contiguous()
    assert x.stride() == torch.empty(sizes).stride()
    assert x.sum() == 0


@pytest.mark.parametrize("way", [torch.from_numpy, torch.from_dlpack, torch.frombuffer])
def test_the_owner_is_dropped_once_wherever_the_last_tensor_goes(way):
    """On another thread, and in backward, which runs without the interpreter's lock."""

    class Owner(np.ndarray):
        pass

    def made():
        array = np.ones(1 << 16, dtype=np.float32).view(Owner)
        weakref.finalize(array, gone.append, 1)
        return way(array, dtype=torch.float32) if way is torch.frombuffer else way(array)

    gone = []
    box = [made()]
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert gone == [1]
    weight = torch.ones(1 << 16, requires_grad=True)
    (made() * weight).sum().backward()
    gc.collect()
    assert gone == [1, 1]


def test_dlpack_with_pytorch():
    oracle = pytest.importorskip("torch")
    theirs = oracle.arange(4.0)
    x = torch.from_dlpack(theirs)
    theirs[1] = 8.0
    assert x.tolist() == [0.0, 8.0, 2.0, 3.0]
    again = oracle.from_dlpack(torch.tensor([1, 2], dtype=torch.int16))
    assert again.tolist() == [1, 2]
    half = oracle.from_dlpack(torch.tensor([1.5], dtype=torch.bfloat16))
    assert half.dtype is oracle.bfloat16


@pytest.mark.parametrize("dtype", ["?", "B", "h", "i", "l", "e", "f", "d"])
def test_buffer_protocol(dtype):
    x = torch.from_numpy(np.array([[0, 1], [1, 0]], dtype=dtype))
    view = memoryview(x)
    assert view.shape == (2, 2)
    assert view.format == dtype
    if dtype != "e":  # Python's memoryview reads no half floats before 3.12
        assert view.tolist() == x.tolist()
    assert memoryview(x.T).strides == view.strides[::-1]


@pytest.mark.parametrize("dtype", "bool uint8 int8 int16 int32 int64 float32 complex64".split())
def test_numpys_letters_of_dtypes(dtype):
    x = torch.zeros(2, dtype=getattr(torch, dtype))
    letter = np.dtype(dtype).char  # of several types with 8 bytes
    assert np.array(x).dtype.char == np.asarray(x).dtype.char == x.numpy().dtype.char == letter


def test_buffer_keeps_tensor_alive():
    x = torch.tensor([1.0, 2.0])
    ref = weakref.ref(x)
    view = memoryview(x)
    del x
    assert view[1] == 2.0
    view.release()
    del view
    assert ref() is None


def test_frombuffer():
    raw = array.array("f", [1.0, 2.0, 3.0])
    x = torch.frombuffer(raw, dtype=torch.float32)
    assert x.tolist() == [1.0, 2.0, 3.0]
    raw[0] = 5.0
    assert x[0].item() == 5.0
    assert torch.frombuffer(raw, dtype=torch.float32, count=1, offset=4).tolist() == [2.0]
    for options in ({"offset": 12}, {"offset": -1}, {"count": 4}, {"count": 0}, {"offset": 1}):
        with pytest.raises(ValueError):
            torch.frombuffer(raw, dtype=torch.float32, **options)
    with pytest.raises(ValueError):
        torch.frombuffer(b"", dtype=torch.uint8)
    with pytest.raises(ValueError, match="buffer protocol"):
        torch.frombuffer(3, dtype=torch.uint8)


def test_storage_is_shared_memory():
    x = torch.tensor([1.0, 2.0])
    storage = x.untyped_storage()
    assert storage is x[1:].untyped_storage()
    assert storage.nbytes() == 8
    memoryview(storage).cast("B").cast("f")[0] = 3.0
    assert x.tolist() == [3.0, 2.0]
    typed = x.storage()
    assert len(typed) == 2
    assert typed[1] == 2.0
    assert typed.tolist() == [3.0, 2.0]


def test_slices_of_storages_share_memory():
    x = torch.arange(4, dtype=torch.uint8)
    storage = x.untyped_storage()
    part = storage[1:3]
    part[0] = 9
    assert x.tolist() == [0, 9, 2, 3] == storage.tolist()
    x[2] = 7
    assert part.tolist() == [9, 7] and part.nbytes() == len(part) == 2
    storage[-2:] = 260  # the last eight bits
    storage[0] = -1
    assert x.tolist() == [255, 9, 4, 4]
    assert part[1:][0] == 4 and storage[3:1].tolist() == []
    assert part.data_ptr() == storage.data_ptr() + 1 and part.device == storage.device
    assert not part.resizable()
    with pytest.raises(RuntimeError, match="not resizable"):
        storage.resize_(1 << 20)  # would move what the slice shows
    address = storage.data_ptr()
    del x, storage
    gc.collect()
    assert part.data_ptr() == address + 1 and part.tolist() == [9, 4]
    y = torch.tensor([]).set_(torch.arange(4.0).untyped_storage()[4:12])
    assert y.tolist() == [1.0, 2.0]


def test_what_storages_refuse():
    storage = torch.arange(4, dtype=torch.uint8).untyped_storage()
    for index, value, error in (
        (4, 1, IndexError),
        (-5, 1, IndexError),
        ("a", 1, TypeError),
        (slice(0, 4, 2), 1, RuntimeError),
        (0, 1.5, RuntimeError),
        (slice(0, 2), torch.tensor(1), RuntimeError),
    ):
        with pytest.raises(error):
            storage[index] = value
        if isinstance(value, int):
            with pytest.raises(error):
                storage[index]
    with pytest.raises(TypeError):
        del storage[0]
    read_only = torch.UntypedStorage._from_buffer(b"abcd")
    assert read_only[1:3].tolist() == [98, 99]
    for target in (read_only, read_only[1:3]):
        with pytest.raises(RuntimeError, match="read-only"):
            target[0] = 1
        with pytest.raises(RuntimeError, match="read-only"):
            target[:1] = 1
    with pytest.raises(RuntimeError, match="slices are only supported"):
        torch.arange(4.0).storage()[1:2]


def test_meta_storages_know_their_bytes():
    x = torch.empty(3, 4, device="meta")
    storage = x.untyped_storage()
    assert (storage.nbytes(), len(storage), storage.data_ptr()) == (48, 48, 0)
    assert x[1:].untyped_storage().nbytes() == 48
    assert x.double().untyped_storage().nbytes() == 96
    assert (x + x).t().contiguous().untyped_storage().nbytes() == 48
    assert torch.empty_strided((2, 3), (10, 1), device="meta").untyped_storage().nbytes() == 52
    assert torch.empty(4, device="meta").resize_(9).untyped_storage().nbytes() == 36
    assert len(x.storage()) == 12
    assert storage[8:16].nbytes() == 8
    with pytest.raises(NotImplementedError):
        storage[0]


def test_sizes_of_storage_objects():
    for n in (0, 3, 1000):
        storage = torch.UntypedStorage(n)
        assert sys.getsizeof(storage) == sys.getsizeof(torch.UntypedStorage(0)) + n
        typed = torch.zeros(n).storage()
        assert sys.getsizeof(typed) == sys.getsizeof(torch.zeros(0).storage()) + 4 * n
    assert sys.getsizeof(torch.empty(9, device="meta").untyped_storage()) >= 36


def test_storage_from_a_buffer():
    make = torch.UntypedStorage.from_buffer
    assert make(b"abcd").tolist() == [97, 98, 99, 100]
    assert make(b"abcd", "native", 2, 1, torch.uint8).tolist() == [98, 99]
    assert make(b"\1\2\3\4", "big", dtype=torch.int16).tolist() == [2, 1, 4, 3]
    assert make(b"", dtype=torch.float32).nbytes() == 0
    data = bytearray(4)
    copied = make(data)
    data[0] = 1
    assert copied[0] == 0
    for args in ((b"abc", "big", None, 0, torch.int32), (b"abc", "middle"), (b"abc", "big", 9)):
        with pytest.raises(ValueError):
            make(*args)
    with pytest.raises(TypeError):
        make(3)


def test_tensor_on_storage_stays_inside():
    storage = torch.UntypedStorage(bytes(16))
    x = torch._C._tensor_from_storage(storage, torch.float32, 0, (2, 2), (2, 1))
    assert x.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    for offset, size, stride in (
        (0, (5,), (1,)), (4, (1,), (1,)), (-1, (1,), (1,)), (0, (2,), (2**61,)), (0, (-1,), (1,)),
        (0, (2**62, 2**62), (1, 1)),
    ):  # fmt: skip
        with pytest.raises(RuntimeError):
            torch._C._tensor_from_storage(storage, torch.float32, offset, size, stride)


def test_importing_taeda_leaves_numpy_alone():
    import subprocess

    code = "import sys, taeda; taeda.tensor([1.0]); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
