#include "taeda/dtype.h"

#include <atomic>

namespace taeda {
namespace {

struct Names {
  std::string_view text, scalar;
};
constexpr Names kNames[kNumDTypes] = {
    {"bool", "Bool"},
    {"uint8", "Byte"},
    {"int8", "Char"},
    {"int16", "Short"},
    {"int32", "Int"},
    {"int64", "Long"},
    {"float16", "Half"},
    {"bfloat16", "BFloat16"},
    {"float32", "Float"},
    {"float64", "Double"},
    {"complex64", "ComplexFloat"},
    {"complex128", "ComplexDouble"},
};

constexpr DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a > b) return promote(b, a);
  // a < b from here on: the enumeration goes up by category and size, so b wins but for these.
  if (a == DType::kUInt8 && b == DType::kInt8) return DType::kInt16;
  if (a == DType::kFloat16 && b == DType::kBFloat16) return DType::kFloat32;
  if (a == DType::kFloat64 && b == DType::kComplex64) return DType::kComplex128;
  return b;
}

struct PromoteTable {
  DType entry[kNumDTypes][kNumDTypes];
};
constexpr PromoteTable make_table() {
  PromoteTable table{};
  for (int a = 0; a < kNumDTypes; a++)
    for (int b = 0; b < kNumDTypes; b++)
      table.entry[a][b] = promote(static_cast<DType>(a), static_cast<DType>(b));
  return table;
}
constexpr PromoteTable kPromote = make_table();

std::atomic<DType> the_default_dtype{DType::kFloat32};

}  // namespace

std::string_view to_text(DType t) { return kNames[static_cast<int>(t)].text; }
std::string_view scalar_type_name(DType t) { return kNames[static_cast<int>(t)].scalar; }

DType promote_types(DType a, DType b) {
  return kPromote.entry[static_cast<int>(a)][static_cast<int>(b)];
}

bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integral(to)) return false;
  return to != DType::kBool || from == DType::kBool;
}

DType default_dtype() { return the_default_dtype.load(std::memory_order_relaxed); }
void set_default_dtype(DType t) { the_default_dtype.store(t, std::memory_order_relaxed); }

}  // namespace taeda
