#include "ops/math_bits.h"

#include "core/host_copy.h"
#include "op/clone.h"
#include "op/conj_physical.h"
#include "op/copy_.h"
#include "op/neg.h"
#include "op/resize_.h"
#include "ops/modes.h"
#include "ops/tensors_of.h"

namespace taeda {
namespace math_bits {
namespace {

// The keys that have had the call before this handler.
constexpr KeySet kAbove =
    KeySet::below(static_cast<Key>(kNumKeys)) - KeySet::below(Key::kConjugate);

bool has_bits(const Tensor& t) { return t.defined() && !(t.impl()->keys & kMathBits).empty(); }

// Views pass the bits on (alias_tensor), the two that turn them over are views too.
bool passes_bits_on(const Operator& op) {
  return op.record() && op.record()->inverse != OperatorRecord::Inverse::kNone;
}

// A tensor that the operator writes, and the copy that it is given instead.
struct Written {
  Tensor tensor, copy;
};

// The conjugate, the negative, or both of a tensor without bits.
Tensor applied(const Tensor& t, KeySet bits) {
  const Tensor conjugate = bits.has(Key::kConjugate) ? op::conj_physical(t) : t;
  return bits.has(Key::kNegative) ? op::neg(conjugate) : conjugate;
}

// Takes a tensor's bits away until the end of the scope.
class WithoutBits {
 public:
  explicit WithoutBits(const Tensor& t) : impl_(t.ref()), bits_(impl_->keys & kMathBits) {
    impl_->keys = impl_->keys - kMathBits;
  }
  ~WithoutBits() { impl_->keys = impl_->keys | bits_; }
  WithoutBits(const WithoutBits&) = delete;
  WithoutBits& operator=(const WithoutBits&) = delete;

 private:
  const Ref<TensorImpl> impl_;
  const KeySet bits_;
};

// Gives `to` the copy's sizes and elements.
void write_back(const Written& written) {
  const Tensor& to = written.tensor;
  if (to.sizes() != written.copy.sizes()) {
    const WithoutBits plain(to);
    op::resize_(to, written.copy.sizes(), std::nullopt);
  }
  op::copy_(with_bits(to, {}), applied(written.copy, to.impl()->keys & kMathBits), false);
}

}  // namespace

Tensor with_bits(const Tensor& t, KeySet bits) {
  Tensor alias = alias_tensor(t, t.sizes(), t.strides(), t.storage_offset());
  alias.impl()->keys = (t.impl()->keys & (kDeviceKeys | Key::kFunctionalize)) | bits;
  return alias;
}

Tensor resolved(const Tensor& t) {
  if (!has_bits(t)) return t;
  const ExcludeKeys above(kAbove);
  return applied(with_bits(t, {}), t.impl()->keys & kMathBits);
}

void handle(const Operator& op, KeySet keys, Stack& stack) {
  const KeySet below = keys - kMathBits;
  if (passes_bits_on(op)) return op.redispatch(below, stack);
  const ExcludeKeys above(kAbove);
  std::vector<Written> written;
  const Schema& schema = op.schema();
  // Steps of optimizers write lists, which their schemas do not say.
  const bool writes_lists = op.name().ends_with("_") && !schema.is_mutable();
  for (size_t i = 0; i < stack.size(); i++) {
    change_tensors(stack[i], [&](const Tensor& t) {
      if (!has_bits(t)) return t;
      const Tensor copy = resolved(t);
      if (schema.arguments[i].alias.written || writes_lists) written.push_back({t, copy});
      return copy;
    });
  }
  op.redispatch(below, stack);
  for (const Written& w : written) write_back(w);
  change_tensors(stack, [&](const Tensor& t) {
    for (const Written& w : written)
      if (t.is_same(w.copy)) return w.tensor;
    return t;
  });
}

namespace {
// One store while the library is loaded: core, a layer below, cannot name this file.
const bool known_to_core = (resolved_value = resolved, true);
}  // namespace

}  // namespace math_bits

namespace impl {
namespace {
KeySet flipped(const Tensor& t, Key bit) {
  const KeySet bits = t.impl()->keys & kMathBits;
  return bits.has(bit) ? bits - bit : bits | bit;
}
}  // namespace

Tensor _conj(const Tensor& self) {
  return math_bits::with_bits(self, flipped(self, Key::kConjugate));
}
Tensor _neg_view(const Tensor& self) {
  return math_bits::with_bits(self, flipped(self, Key::kNegative));
}
Tensor resolve_conj(const Tensor& self) {
  return self.is_conj() ? op::clone(self, std::nullopt) : self;
}
Tensor resolve_neg(const Tensor& self) {
  return self.is_neg() ? op::clone(self, std::nullopt) : self;
}

}  // namespace impl
}  // namespace taeda
