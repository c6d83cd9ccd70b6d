"""Indices of sparse rows, compared with counts by NumPy."""

import numpy as np
import pytest

import taeda

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [taeda.int32, taeda.int64])
@pytest.mark.parametrize("count", [0, 1, 17])
def test_between_rows_and_where_they_begin(dtype, count):
    rows, columns = np.sort(RNG.integers(0, 6, count)), RNG.integers(0, 4, count)
    found = taeda._convert_indices_from_coo_to_csr(taeda.tensor(rows, dtype=dtype), 6)
    assert found.dtype == taeda.int64
    by_row = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=6))])
    assert found.tolist() == by_row.tolist()
    short = taeda._convert_indices_from_coo_to_csr(taeda.tensor(rows), 6, out_int32=True)
    assert short.dtype == taeda.int32 and short.tolist() == by_row.tolist()
    back = taeda._convert_indices_from_csr_to_coo(found, taeda.tensor(columns))
    assert back.tolist() == [rows.tolist(), columns.tolist()]
    pair = taeda._convert_indices_from_csr_to_coo(
        found, taeda.tensor(columns), out_int32=True, transpose=True
    )
    assert pair.dtype == taeda.int32 and pair.tolist() == [columns.tolist(), rows.tolist()]


def test_operators_and_errors():
    aten = taeda.ops.aten
    assert aten._convert_indices_from_coo_to_csr(taeda.tensor([0, 1]), 0).tolist() == [0]
    with pytest.raises(RuntimeError, match="supposed to be a vector, but got 2 dimensional"):
        taeda._convert_indices_from_coo_to_csr(taeda.zeros(1, 2, dtype=taeda.int64), 2)
    with pytest.raises(NotImplementedError, match="float32"):
        taeda._convert_indices_from_coo_to_csr(taeda.zeros(2), 2)
