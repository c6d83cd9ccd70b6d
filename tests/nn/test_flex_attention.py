"""flex_attention and its masks, beside PyTorch's and beside attention written out."""

import math

import numpy as np
import pytest

import taeda
from taeda.nn.attention import flex_attention as flex

torch = pytest.importorskip("torch")
oracle = pytest.importorskip("torch.nn.attention.flex_attention")


def causal(b, h, q, kv):
    return q >= kv


def window(b, h, q, kv):
    return (q - kv).abs() < 70


def per_head(b, h, q, kv):
    return (q * (h + 1)) % 3 >= kv % (b + 2)


def both(make):
    return make(flex), make(oracle)


def same(ours, theirs):
    assert (ours is None) == (theirs is None)
    if ours is not None:
        assert str(ours.dtype) == str(theirs.dtype)
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def same_valid(ours, theirs, counts, columns):
    """Equal but for what follows a row's blocks, which has no meaning."""
    same(getattr(ours, counts), getattr(theirs, counts))
    if getattr(ours, counts) is None:
        return
    number = getattr(ours, counts).numpy()[..., None]
    a, b = getattr(ours, columns).numpy(), getattr(theirs, columns).numpy()
    valid = np.arange(a.shape[-1]) < number
    np.testing.assert_array_equal(np.where(valid, a, -1), np.where(valid, b, -1))


MODS = [causal, window, per_head]


@pytest.mark.parametrize("mod", MODS)
@pytest.mark.parametrize("separate", [True, False])
@pytest.mark.parametrize("size", [128, (64, 32)])
def test_create_block_mask_finds_pytorchs_blocks(mod, separate, size):
    ours, theirs = both(
        lambda m: m.create_block_mask(
            mod, 2, 3, 200, 330, "cpu", BLOCK_SIZE=size, separate_full_blocks=separate
        )
    )
    for part in ("kv", "full_kv", "q", "full_q"):
        same_valid(ours, theirs, f"{part}_num_blocks", f"{part}_indices")
    assert ours.shape == tuple(theirs.shape) and ours.numel() == theirs.numel()
    assert ours.sparsity() == pytest.approx(theirs.sparsity())
    same(ours.to_dense(), theirs.to_dense())
    assert str(ours) == str(theirs)
    assert repr(ours).replace("taeda", "torch") == repr(theirs)
    assert len(ours.as_tuple()) == len(theirs.as_tuple())
    assert len(ours.as_tuple(False)) == len(theirs.as_tuple(False))


def test_slices_and_crops_are_pytorchs():
    ours, theirs = both(lambda m: m.create_block_mask(causal, 2, 2, 512, 512, "cpu"))
    for index in (0, (0, 1), (slice(0, 2), slice(1, 2)), (-1, 0, slice(1, 3))):
        assert repr(ours[index]).split("mask_mod")[0] == repr(theirs[index]).split("mask_mod")[0]
        same(ours[index].to_dense(), theirs[index].to_dense())
    same(ours._adjust(200, 300).to_dense(), theirs._adjust(200, 300).to_dense())
    with pytest.raises(IndexError):
        ours[5]
    with pytest.raises(RuntimeError, match="sliced"):
        query = taeda.zeros(1, 1, 512, 4)
        flex.flex_attention(query, query, query, block_mask=ours[0, 0])


def test_create_mask_of_a_score_mod():
    def alibi(score, b, h, q, kv):
        return torch_of(score).where(q >= kv, score - (q - kv) * (h + 1), -math.inf)

    def torch_of(tensor):
        return taeda if isinstance(tensor, taeda.Tensor) else torch

    ours, theirs = both(lambda m: m.create_mask(alibi, 1, 2, 5, 7, "cpu"))
    same(ours, theirs)


def test_masks_combine():
    for combine in ("or_masks", "and_masks"):
        ours, theirs = both(
            lambda m, c=combine: m.create_mask(getattr(m, c)(causal, window), 1, 1, 150, 90, "cpu")
        )
        same(ours, theirs)
    with pytest.raises(RuntimeError, match="callable"):
        flex.or_masks(3)


def tensors(shape_q, shape_k, dtype=np.float32):
    generator = np.random.default_rng(0)
    return [generator.standard_normal(s).astype(dtype) for s in (shape_q, shape_k, shape_k)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mod", [None, *MODS])
@pytest.mark.parametrize("scored", [False, True])
def test_the_output_is_pytorchs(mod, scored, dtype, monkeypatch):
    monkeypatch.setattr(oracle, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    arrays = tensors((2, 4, 150, 8), (2, 2, 90, 8), dtype)
    bias = np.random.default_rng(1).standard_normal((2, 4, 150, 90)).astype(dtype)

    def run(library, module):
        table = library.from_numpy(bias)

        def add(score, b, h, q, kv):
            return (score + table[b, h, q, kv] + table[b][h][q][kv]).tanh() * 3

        query, key, value = (library.from_numpy(array) for array in arrays)
        on = query.device
        mask = None if mod is None else module.create_block_mask(mod, 2, 4, 150, 90, on)
        return module.flex_attention(
            query,
            key,
            value,
            add if scored else None,
            mask,
            enable_gqa=True,
            return_aux=module.AuxRequest(lse=True),
        )

    (out, aux), (out_torch, aux_torch) = run(taeda, flex), run(torch, oracle)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(out.numpy(), out_torch.numpy(), tolerance, tolerance)
    np.testing.assert_allclose(aux.lse.numpy(), aux_torch.lse.numpy(), tolerance, tolerance)
    assert aux.max_scores is None


def test_gradients_are_those_of_attention_written_out():
    arrays = tensors((1, 2, 40, 4), (1, 2, 40, 4), np.float64)
    slopes = np.array([0.3, 0.7])

    def leaves(library):
        found = [library.from_numpy(a.copy()) for a in (*arrays, slopes)]
        return [leaf.requires_grad_() for leaf in found]

    query, key, value, slope = leaves(taeda)
    mask = flex.create_block_mask(causal, 1, 1, 40, 40, BLOCK_SIZE=16)

    def biased(score, b, h, q, kv):
        return score - slope[h] * (q - kv)

    flex.flex_attention(query, key, value, biased, mask).pow(2).sum().backward()

    q, k, v, s = leaves(torch)
    steps = torch.arange(40)
    scores = q @ k.mT / 2 - s[:, None, None] * (steps[:, None] - steps)
    scores = scores.masked_fill(steps[:, None] < steps, -math.inf)
    (scores.softmax(-1) @ v).pow(2).sum().backward()
    for ours, theirs in zip((query, key, value, slope), (q, k, v, s), strict=True):
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), 1e-10, 1e-12)


def test_rows_that_attend_to_nothing_are_zero():
    query = taeda.randn(1, 1, 6, 4, requires_grad=True)
    mask = flex.create_block_mask(lambda b, h, q, kv: (q > 2) & (kv < 3), 1, 1, 6, 6)
    output, aux = flex.flex_attention(
        query, query, query, block_mask=mask, return_aux=flex.AuxRequest(True, True)
    )
    assert (output[:, :, :3] == 0).all() and (aux.lse[:, :, :3] == -math.inf).all()
    output.sum().backward()
    assert query.grad.isfinite().all()


def test_blocks_that_are_left_out_do_not_count():
    counts = taeda.ones(1, 1, 2, dtype=taeda.int32)
    columns = taeda.tensor([[[[0, 1], [1, 0]]]], dtype=taeda.int32)
    mask = flex.BlockMask.from_kv_blocks(counts, columns, BLOCK_SIZE=8)
    query, key, value = (taeda.randn(1, 1, 16, 4) for _ in range(3))
    output = flex.flex_attention(query, key, value, block_mask=mask)
    for part in (slice(0, 8), slice(8, 16)):
        alone = flex.flex_attention(*(each[:, :, part] for each in (query, key, value)))
        assert taeda.allclose(output[:, :, part], alone, atol=1e-6)


@pytest.mark.parametrize(
    ("shapes", "error", "words"),
    [
        (((1, 2, 8, 4), (1, 2, 8, 3)), ValueError, "embedding dimension"),
        (((1, 4, 8, 4), (1, 2, 8, 4)), ValueError, "enable_gqa"),
        (((2, 2, 8, 4), (1, 2, 8, 4)), ValueError, "batch size"),
        (((2, 8, 4), (2, 8, 4)), NotImplementedError, "4D"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_as_by_pytorch(shapes, error, words):
    for library, module in ((taeda, flex), (torch, oracle)):
        query, key = (library.zeros(shape) for shape in shapes)
        with pytest.raises(error, match=words):
            module.flex_attention(query, key, key)


def test_lengths_that_do_not_fit_are_refused():
    mask = flex.create_block_mask(causal, 1, 1, 8, 8)
    for length in (4, 12):
        query = taeda.zeros(1, 1, length, 4)
        with pytest.raises(ValueError, match="block_mask was created for"):
            flex.flex_attention(query, query, query, block_mask=mask)


def test_a_block_mask_is_a_tree():
    from taeda.utils import _pytree

    mask = flex.create_block_mask(causal, 1, 1, 300, 300)
    leaves, spec = _pytree.tree_flatten(mask)
    again = _pytree.tree_unflatten(leaves, spec)
    assert len(leaves) == 8 and str(again) == str(mask.to("cpu")) == str(mask)
