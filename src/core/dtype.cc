#include "taeda/dtype.h"

#include <atomic>
#include <optional>

#include "taeda/error.h"

namespace taeda {
namespace {

constexpr bool is_wide_unsigned(DType t) { return is_integral(t) && is_storage_type(t); }

// Nothing where PyTorch has no common type.
constexpr std::optional<DType> promote(DType a, DType b) {
  if (a == b) return a;
  if (a > b) return promote(b, a);
  if (is_narrow_floating(a) || is_narrow_floating(b)) return {};
  if (is_wide_unsigned(b)) return is_floating(a) ? std::optional(a) : std::nullopt;
  if (is_wide_unsigned(a)) return {};
  if (is_complex(b)) {
    const DType real = to_real(b);
    return to_complex(is_inexact(a) ? *promote(to_real(a), real) : real);
  }
  // The enumeration goes up by category and size from here on, so b wins but for these.
  if (a == DType::kUInt8 && b == DType::kInt8) return DType::kInt16;
  if (a == DType::kFloat16 && b == DType::kBFloat16) return DType::kFloat32;
  return b;
}

struct PromoteTable {
  std::optional<DType> entry[kNumDTypes][kNumDTypes];
};
constexpr PromoteTable make_table() {
  PromoteTable table{};
  for (int a = 0; a < kNumDTypes; a++)
    for (int b = 0; b < kNumDTypes; b++)
      table.entry[a][b] = promote(static_cast<DType>(a), static_cast<DType>(b));
  return table;
}
constexpr PromoteTable kPromote = make_table();

[[noreturn]] void fail_promotion(DType a, DType b) {
  fail(ErrorKind::kRuntime, "Promotion for {} is not supported, attempted to promote {} and {}",
       is_narrow_floating(a) || is_narrow_floating(b) ? "Float8 Types"
                                                      : "uint16, uint32, uint64 types",
       scalar_type_name(a), scalar_type_name(b));
}

std::atomic<DType> the_default_dtype{DType::kFloat32};

}  // namespace

void Float4E2M1x2::refuse() {
  fail(ErrorKind::kNotImplemented,
       "\"copy_kernel\" not implemented for '{}': its elements have no conversions; view it as "
       "torch.uint8 to read or write them",
       scalar_type_name(DType::kFloat4E2M1FNx2));
}

std::string_view to_text(DType t) { return dtype_info(t).name; }
std::string_view scalar_type_name(DType t) { return dtype_info(t).class_name; }

DType promote_types(DType a, DType b) {
  const std::optional<DType> common = kPromote.entry[static_cast<int>(a)][static_cast<int>(b)];
  if (!common) [[unlikely]]
    fail_promotion(a, b);
  return *common;
}

bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integral(to)) return false;
  return to != DType::kBool || from == DType::kBool;
}

DType default_dtype() { return the_default_dtype.load(std::memory_order_relaxed); }
void set_default_dtype(DType t) { the_default_dtype.store(t, std::memory_order_relaxed); }

}  // namespace taeda
