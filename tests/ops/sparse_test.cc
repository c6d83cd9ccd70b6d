// Sparse tensors, from C++: what they consist of, and their operators against loops over elements.
#include "ops/sparse/parts.h"

#include <gtest/gtest.h>

#include "taeda/taeda.h"

namespace taeda {
namespace {

// Element (row, column) of a matrix of 3 x 4; coordinates may repeat.
struct Entry {
  int64_t row, column;
  double value;
};
const std::vector<Entry> kEntries = {{2, 1, 5}, {0, 3, 1}, {2, 1, -2}, {1, 0, 4}, {0, 0, 7}};

Tensor sparse(const std::vector<Entry>& entries) {
  Tensor indices = zeros({2, static_cast<int64_t>(entries.size())}, DType::kInt64);
  Tensor values = zeros({static_cast<int64_t>(entries.size())}, DType::kFloat64);
  for (size_t i = 0; i < entries.size(); i++) {
    indices.data<int64_t>()[i] = entries[i].row;
    indices.data<int64_t>()[entries.size() + i] = entries[i].column;
    values.data<double>()[i] = entries[i].value;
  }
  return sparse::make_coo(indices, values, {3, 4}, false);
}

std::vector<double> dense(const std::vector<Entry>& entries) {
  std::vector<double> matrix(12);
  for (const Entry& e : entries) matrix[static_cast<size_t>(4 * e.row + e.column)] += e.value;
  return matrix;
}

template <class T>
std::vector<T> elements(const Tensor& t) {
  const Tensor flat = t.detach().contiguous();
  return {flat.data<T>(), flat.data<T>() + flat.numel()};
}
std::vector<double> values(const Tensor& t) { return elements<double>(sparse::as_dense(t)); }

TEST(Sparse, RepeatedCoordinatesAreAdded) {
  const Tensor t = sparse(kEntries);
  EXPECT_EQ(t.layout(), Layout::kSparseCoo);
  EXPECT_EQ(sparse::nnz(t), 5);
  EXPECT_EQ(values(t), dense(kEntries));
}

TEST(Sparse, CoalescingSortsCoordinatesAndAddsTheirValues) {
  const Tensor t = sparse::coalesced(sparse(kEntries));
  const SparseParts& parts = sparse_parts(t);
  EXPECT_TRUE(parts.coalesced);
  EXPECT_EQ(elements<int64_t>(parts.indices), (std::vector<int64_t>{0, 0, 1, 2, 0, 3, 0, 1}));
  EXPECT_EQ(elements<double>(parts.values), (std::vector<double>{7, 1, 4, 3}));
  EXPECT_TRUE(sparse::coalesced(t).is_same(t));
}

TEST(Sparse, CompressedByRowsAndByColumns) {
  const Tensor coo = sparse::coalesced(sparse(kEntries));
  const Tensor rows = sparse::as_compressed(coo, Layout::kSparseCsr, {});
  EXPECT_EQ(elements<int64_t>(sparse_parts(rows).indices), (std::vector<int64_t>{0, 2, 3, 4}));
  EXPECT_EQ(elements<int64_t>(sparse_parts(rows).plain), (std::vector<int64_t>{0, 3, 0, 1}));
  const Tensor columns = sparse::as_compressed(coo, Layout::kSparseCsc, {});
  EXPECT_EQ(elements<int64_t>(sparse_parts(columns).indices),
            (std::vector<int64_t>{0, 2, 3, 3, 4}));
  for (const Tensor& t : {rows, columns}) {
    EXPECT_EQ(values(t), dense(kEntries));
    EXPECT_EQ(values(sparse::as_coo(t)), dense(kEntries));
  }
}

TEST(Sparse, LinearIndicesAndBack) {
  const Tensor indices = sparse_parts(sparse(kEntries)).indices;
  const Tensor linear = sparse::linear_indices(indices, {3, 4});
  EXPECT_EQ(elements<int64_t>(linear), (std::vector<int64_t>{9, 3, 9, 4, 0}));
  EXPECT_EQ(elements<int64_t>(sparse::unravel(linear, {3, 4})), elements<int64_t>(indices));
}

TEST(Sparse, TransposedAndSelected) {
  const std::vector<double> want = dense(kEntries);
  const Tensor t = sparse(kEntries), transposed = t.transpose(0, 1);
  EXPECT_EQ(transposed.sizes(), IntSpan({4, 3}));
  const std::vector<double> got = values(transposed);
  for (size_t i = 0; i < 3; i++) {
    const std::vector<double> row = values(t.select(0, static_cast<int64_t>(i)));
    for (size_t j = 0; j < 4; j++) {
      EXPECT_EQ(got[3 * j + i], want[4 * i + j]);
      EXPECT_EQ(row[j], want[4 * i + j]);
    }
  }
}

TEST(Sparse, PutTogetherAlongEitherDimension) {
  const Tensor t = sparse(kEntries);
  const std::vector<double> want = dense(kEntries), below = values(cat({t, t}, 0)),
                            beside = values(cat({t, t}, 1));
  for (size_t i = 0; i < 3; i++)
    for (size_t j = 0; j < 4; j++) {
      EXPECT_EQ(below[4 * i + j], want[4 * i + j]);
      EXPECT_EQ(below[12 + 4 * i + j], want[4 * i + j]);
      EXPECT_EQ(beside[8 * i + j], want[4 * i + j]);
      EXPECT_EQ(beside[8 * i + 4 + j], want[4 * i + j]);
    }
}

TEST(Sparse, ProductWithADenseMatrixAndItsGradient) {
  const Tensor t = sparse(kEntries);
  const Tensor x = zeros({4, 2}, DType::kFloat64).requires_grad_();
  for (int64_t i = 0; i < 8; i++) x.data<double>()[i] = static_cast<double>(3 * i % 8) - 2.5;
  const Tensor product = _sparse_mm(t, x);
  product.sum().backward();
  const std::vector<double> a = dense(kEntries), b = elements<double>(x),
                            got = elements<double>(product), gradient = elements<double>(x.grad());
  for (size_t k = 0; k < 2; k++) {
    for (size_t i = 0; i < 3; i++) {
      double sum = 0;
      for (size_t j = 0; j < 4; j++) sum += a[4 * i + j] * b[2 * j + k];
      EXPECT_DOUBLE_EQ(got[2 * i + k], sum);
    }
    for (size_t j = 0; j < 4; j++)
      EXPECT_DOUBLE_EQ(gradient[2 * j + k], a[j] + a[4 + j] + a[8 + j]);
  }
}

TEST(Sparse, OperatorsWithoutARuleSaySo) {
  EXPECT_THROW(sparse(kEntries).cumsum(0), Error);
  EXPECT_THROW(sparse(kEntries).expand({2, 3, 4}), Error);
}

}  // namespace
}  // namespace taeda
