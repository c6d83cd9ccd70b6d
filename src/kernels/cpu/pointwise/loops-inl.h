// The dense kernels of some functors, each of them `const DenseTable& taeda::dense_NAME()`: float
// and double as vectors for AVX2 and AVX-512; everything else (integers, bool, complex, and float
// below AVX2) one number at a time, compiled once.
//
// A generated file (gen/pointwise.py) defines, in front of including this one,
//   TD_FUNCTORS         the functors' header
//   TD_LOOPS(X)         X(NAME, functor, number of its fields, of its inputs, the input that it is
//                       differentiated by or -1, the kinds of dtypes) for each of them
//   HWY_TARGET_INCLUDE  its own path
// and is compiled again by Highway for each instruction set, so nothing guards this text.
#include "kernels/cpu/pointwise/dense_lanes.h"
#include "kernels/cpu/pointwise/loop.h"
#include "kernels/cpu/simd/simd.h"
// needs simd.h
#include "kernels/cpu/pointwise/dense-inl.h"

#ifndef TD_LOAD
#define TD_LOAD(NAME, FUNCTOR, FIELDS, INPUTS, PARTIAL, TYPES) \
  using Load_##NAME = decltype(loader<FUNCTOR, FIELDS, PARTIAL>());
#define TD_LOAD_ON_LANES(NAME, ...) using lanes::Load_##NAME;
#define TD_TABLE(NAME, FUNCTOR, FIELDS, INPUTS, PARTIAL, TYPES)          \
  const DenseTable& table_##NAME() {                                     \
    static constexpr DenseTable table =                                  \
        dense_table<Load_##NAME, lanes::Load_##NAME, INPUTS, (TYPES)>(); \
    return table;                                                        \
  }
#define TD_EXPORT(NAME, ...) HWY_EXPORT(table_##NAME);
#define TD_GETTER(NAME, ...)                     \
  const DenseTable& dense_##NAME() {             \
    using namespace cpu;                         \
    return HWY_DYNAMIC_DISPATCH(table_##NAME)(); \
  }

namespace taeda::cpu::kinds {
inline constexpr DTypeSet kBool = dtypes_of(DTypeKind::kBool);
inline constexpr DTypeSet kInteger = dtypes_of(DTypeKind::kInteger);
inline constexpr DTypeSet kFloating = dtypes_of(DTypeKind::kFloating);
inline constexpr DTypeSet kComplex = dtypes_of(DTypeKind::kComplex);
}  // namespace taeda::cpu::kinds
namespace taeda::cpu::lanes {
#include "kernels/pointwise/dual.h"
#include TD_FUNCTORS
#include "kernels/cpu/pointwise/dense_table.h"
TD_LOOPS(TD_LOAD)
}  // namespace taeda::cpu::lanes
#endif

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
#if TD_EMULATED
using lanes::dense_table;
TD_LOOPS(TD_LOAD_ON_LANES)
#else
#include "kernels/pointwise/dual.h"
#include TD_FUNCTORS
#include "kernels/cpu/pointwise/dense_table.h"
TD_LOOPS(TD_LOAD)
#endif
TD_LOOPS(TD_TABLE)
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
TD_LOOPS(TD_EXPORT)
}  // namespace taeda::cpu
namespace taeda {
TD_LOOPS(TD_GETTER)
}  // namespace taeda
#endif
