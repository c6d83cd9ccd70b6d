// The exclusive or of elements' bits: of floating ones as doubles, of others as int64.
#include <algorithm>
#include <bit>

#include "kernels/cpu/reduce/reducers-inl.h"

// Vector code for rows and columns.
#pragma GCC optimize("O3")

namespace taeda::cpu {
namespace {

template <class T>
int64_t bits(T x) {
  if constexpr (std::is_same_v<T, int64_t>)
    return x;
  else
    return std::bit_cast<int64_t>(static_cast<double>(x));
}

template <class T>
struct Xor {
  static void init(void* states, int64_t n) { std::fill_n(static_cast<int64_t*>(states), n, 0); }
  static void row(void* state, const void* data, int64_t n, int64_t) {
    const T* const x = static_cast<const T*>(data);
    int64_t s = 0;
    for (int64_t i = 0; i < n; i++) s ^= bits(x[i]);
    *static_cast<int64_t*>(state) ^= s;
  }
  static void columns(void* states, const void* data, int64_t n, int64_t rows, int64_t stride,
                      int64_t) {
    const T* const x = static_cast<const T*>(data);
    int64_t* const s = static_cast<int64_t*>(states);
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < n; j++) s[j] ^= bits(x[i * stride + j]);
  }
  static void combine(void* states, const void* others, int64_t n) {
    for (int64_t j = 0; j < n; j++)
      static_cast<int64_t*>(states)[j] ^= static_cast<const int64_t*>(others)[j];
  }
  static constexpr Reducer kReducer{kDTypeOf<T>, sizeof(int64_t), init, row, columns, combine};
};

int64_t result(const int64_t& s, int64_t, const void*) { return s; }

}  // namespace

void xor_bits(const View& out, const View& self, IntSpan dim, bool) {
  const Reducer& reducer = self.dtype == DType::kFloat64 ? Xor<double>::kReducer
                           : is_floating(self.dtype)     ? Xor<float>::kReducer
                                                         : Xor<int64_t>::kReducer;
  const ReduceResult found{&out, DType::kInt64};
  reduce(reducer, self, dim, {&found, 1}, finalize_each<int64_t, int64_t, result>);
}

}  // namespace taeda::cpu
