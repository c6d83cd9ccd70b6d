#include "autograd/view_replay.h"

#include "autograd/math.h"

namespace taeda::autograd {
namespace {

class OperatorReplay final : public ViewReplay {
 public:
  OperatorReplay(const Operator& op, Stack arguments, size_t output, Ref<const ViewReplay> above)
      : op_(op), arguments_(std::move(arguments)), output_(output), above_(std::move(above)) {
    arguments_[0] = Value();  // the view must not keep its base's other handles alive
  }
  Tensor run(const Tensor& base) const override {
    Stack stack = arguments_;
    stack[0] = above_ ? above_->run(base) : base;
    op_.call(stack);
    return stack[0].is_tensors() ? stack[0].tensors()[output_] : stack[output_].tensor();
  }

 private:
  const Operator& op_;
  Stack arguments_;
  size_t output_;
  Ref<const ViewReplay> above_;  // makes the first argument; null: that is the base
};

Tensor empty_in_layout(const Tensor& like, IntSpan sizes, IntSpan strides) {
  static const Operator& op = *find_operator("aten::new_empty_strided");
  Stack stack = {like, sizes, strides};
  op.fill_defaults(stack);
  op.call(stack);
  return stack[0].tensor();
}

}  // namespace

Ref<const ViewReplay> replay_of(const Tensor& view) {
  const TensorImpl& impl = *view.impl();
  constexpr KeySet kOthers = KeySet(Key::kBatched) | Key::kSparse | Key::kFunctionalize;
  if (!impl.wrapped || !impl.keys.has(Key::kPython) || !(impl.keys & kOthers).empty()) return {};
  return Ref<const ViewReplay>(static_cast<const ViewReplay*>(impl.wrapped.get()));
}

void remember_view(const Tensor& view, const Operator& op, const Stack& arguments, size_t output) {
  const Tensor& from = arguments[0].tensor();
  const Ref<const ViewReplay> above = from.impl()->view_base ? replay_of(from) : nullptr;
  view.impl()->wrapped = make_ref<OperatorReplay>(op, arguments, output, above);
}

Tensor copied_to_layout(const Tensor& like, IntSpan sizes, IntSpan strides) {
  Tensor copy = empty_in_layout(like, sizes, strides);
  math::copy_(copy, like);
  return copy;
}

Tensor zeros_in_layout(const Tensor& like, IntSpan sizes, IntSpan strides) {
  Tensor made = empty_in_layout(like, sizes, strides);
  zero_(made);
  return made;
}

void zero_(const Tensor& t) {
  static const Operator& op = *find_operator("aten::zero_");
  Stack stack = {t};
  op.call(stack);
}

}  // namespace taeda::autograd
