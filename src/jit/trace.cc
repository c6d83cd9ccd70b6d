// Recording: the handler of kTrace, and how it knows tensors.
//
// A call comes here before forward mode and autograd, and is recorded below them: they run first,
// with kTrace among their keys, so that tangents are calls of the program, and what backward will
// read (indices of a maximum, a copy of what is overwritten) are results of calls. Backward's own
// operators come here by themselves.
#include <unordered_map>

#include "base/handover.h"
#include "core/host_copy.h"
#include "ops/autocast.h"
#include "ops/dispatch.h"
#include "ops/modes.h"
#include "ops/operator.h"
#include "ops/tensors_of.h"
#include "taeda/trace.h"

namespace taeda::jit {

class Tracer {
 public:
  Tracer(TensorSpan inputs, const TraceOptions& options) : options_(options) {
    for (const Tensor& t : inputs) program_.inputs.push_back(add_value(t));
  }

  const TraceOptions& options() const { return options_; }
  void record(const Operator& op, KeySet below, Stack& stack);
  Program finish(TensorSpan outputs) {
    for (const Tensor& t : outputs) program_.outputs.push_back(number_of(t));
    return std::move(program_);
  }

 private:
  // The number of a tensor that a call reads. One that is not known by itself may be another handle
  // of memory that is (autograd's, of what it saved); else it is a constant.
  int number_of(const Tensor& t);
  int number_of_memory(const Tensor& t);
  // Another number for what a call returns.
  int add_value(const Tensor& t);
  int add_view(const char* name, int self, Stack more, const Tensor& result);
  void name(const Tensor& t, int number);

  Operand operand(const Operator& op, const Value& value);
  Operand result(const Value& value);

  // A tensor as it was when it was recorded: `x.data = y` and `x.t_()` change it by no operator.
  struct Seen {
    explicit Seen(const Tensor& t)
        : tensor(t),
          storage(t.storage().get()),
          sizes(t.sizes()),
          strides(t.strides()),
          offset(t.storage_offset()),
          dtype(t.dtype()),
          bits(t.impl()->keys & kMathBits) {}
    bool has_layout_of(const Tensor& t) const {
      return dtype == t.dtype() && bits == (t.impl()->keys & kMathBits) && sizes == t.sizes() &&
             strides == t.strides() && offset == t.storage_offset();
    }
    Tensor tensor;  // kept, so that its address is nobody else's
    const Storage* storage;
    DimVector sizes, strides;
    int64_t offset;
    DType dtype;
    KeySet bits;
  };
  const Seen& seen(int number) const { return seen_[static_cast<size_t>(number)]; }

  const TraceOptions options_;
  Program program_;
  std::vector<Seen> seen_;  // by number
  std::vector<Tensor> kept_;
  std::unordered_map<const TensorImpl*, int> numbers_;
  std::unordered_map<const Storage*, std::vector<int>> by_storage_;
};

namespace {

thread_local Tracer* current = nullptr;
Tracer* get_current() { return current; }
void set_current(Tracer* tracer) { current = tracer; }
const CarriedValue<get_current, set_current> carried_tracer;

// A number of the program's text, as in `x + 2`.
bool is_plain_number(const Tensor& t) {
  return is_written_number(t) && (t.impl()->keys - (kDeviceKeys | kDifferentiationKeys)).empty();
}

bool differentiated(const Stack& stack) {
  bool any = false;
  each_tensor(stack, [&](const Tensor& t) {
    any |= t.impl()->keys.has(Key::kForward) || (thread_modes.grad_enabled && t.requires_grad());
  });
  return any && !thread_modes.excluded.has(Key::kAutograd);
}

void handle(const Operator& op, KeySet keys, Stack& stack) {
  const KeySet below = keys - Key::kTrace;
  if (!current) return op.redispatch(below, stack);
  const OperatorRecord* record = op.record();
  if (record && record->has(OperatorRecord::kDispatched)) {
    if (!(below & kDifferentiationKeys).empty() &&
        run_layer(op, static_cast<Key>(below.highest()), keys, stack))
      return;  // it has come here again
  } else if (record && !record->has(OperatorRecord::kLeaf)) {
    if (!current->options().composites || differentiated(stack)) return op.redispatch(below, stack);
  } else if (!record) {
    TD_CHECK_IMPLEMENTED(!below.has(Key::kForward),
                         "trace: forward mode of {}, a registered operator, cannot be recorded",
                         op.qualified_name());
  }
  current->record(op, below, stack);
}

}  // namespace

void Tracer::name(const Tensor& t, int number) {
  numbers_[t.impl()] = number;
  by_storage_[t.storage().get()].push_back(number);
}

int Tracer::add_value(const Tensor& t) {
  const int number = static_cast<int>(seen_.size());
  const auto known = by_storage_.find(t.storage().get());
  const int memory = t.storage() && known != by_storage_.end()
                         ? program_.values[static_cast<size_t>(known->second.front())].memory
                         : number;
  seen_.emplace_back(t);
  program_.values.push_back({t.dtype(), DimVector(t.sizes()), memory});
  name(t, number);
  return number;
}

// The call that makes `result` of the value `self`.
int Tracer::add_view(const char* name, int self, Stack more, const Tensor& result) {
  const Operator& op = *find_operator(name);
  Node node{&op, {{Operand::Kind::kTensor, {}, {self}}}, {}, thread_modes.grad_enabled};
  for (Value& value : more) node.arguments.push_back({Operand::Kind::kConstant, value, {}});
  const int number = add_value(result);
  node.results.push_back({Operand::Kind::kTensor, {}, {number}});
  program_.nodes.push_back(std::move(node));
  return number;
}

int Tracer::number_of_memory(const Tensor& t) {
  const auto known = by_storage_.find(t.storage().get());
  if (!t.storage() || known == by_storage_.end()) return kNoValue;
  int same = kNoValue, other = kNoValue;
  for (auto number = known->second.rbegin(); number != known->second.rend(); ++number) {
    const Seen& candidate = seen(*number);
    if (candidate.tensor.storage() != t.storage()) continue;  // its address is used again
    if (candidate.has_layout_of(t)) {
      same = *number;
      if (candidate.tensor.requires_grad() != t.requires_grad() && thread_modes.grad_enabled)
        continue;
      kept_.push_back(t);
      numbers_[t.impl()] = same;
      return same;
    }
    if (candidate.dtype == t.dtype() && candidate.bits == (t.impl()->keys & kMathBits))
      other = *number;
  }
  if (same != kNoValue && !t.requires_grad()) return add_view("aten::detach", same, {}, t);
  if (same != kNoValue) other = same;
  TD_CHECK_IMPLEMENTED(other != kNoValue,
                       "trace: a tensor is used that looks into recorded memory in another dtype, "
                       "and no operator made it");
  return add_view("aten::as_strided", other, {t.sizes(), t.strides(), t.storage_offset()}, t);
}

int Tracer::number_of(const Tensor& t) {
  if (!t.defined()) return kNoValue;
  const auto found = numbers_.find(t.impl());
  if (found != numbers_.end() && seen(found->second).storage == t.storage().get() &&
      seen(found->second).has_layout_of(t))
    return found->second;
  if (const int number = number_of_memory(t); number != kNoValue) return number;
  const int number = add_value(t);
  program_.constants.push_back({number, t});
  return number;
}

Operand Tracer::operand(const Operator& op, const Value& value) {
  Operand operand;
  if (value.is_tensor() && is_plain_number(value.tensor()) &&
      !numbers_.contains(value.tensor().impl())) {
    operand.constant = value.tensor().item_scalar();
  } else if (value.is_tensor()) {
    operand = {Operand::Kind::kTensor, {}, {number_of(value.tensor())}};
  } else if (value.is_tensors()) {
    operand.kind = Operand::Kind::kTensors;
    for (const Tensor& t : value.tensors()) operand.values.push_back(number_of(t));
  } else {
    TD_CHECK_IMPLEMENTED(!value.holds<Generator*>(),
                         "trace: {} draws from a generator that it was given, which a program "
                         "cannot keep. Leave it out: torch.manual_seed() seeds the default one",
                         op.qualified_name());
    operand.constant = value;
  }
  return operand;
}

Operand Tracer::result(const Value& value) {
  Operand operand;
  const auto add = [&](const Tensor& t) {
    operand.values.push_back(t.defined() ? add_value(t) : kNoValue);
  };
  if (value.is_tensor()) {
    operand.kind = Operand::Kind::kTensor;
    add(value.tensor());
  } else if (value.is_tensors()) {
    operand.kind = Operand::Kind::kTensors;
    for (const Tensor& t : value.tensors()) add(t);
  } else {
    operand.constant = value;
  }
  return operand;
}

void Tracer::record(const Operator& op, KeySet below, Stack& stack) {
  Node node{&op, {}, {}, thread_modes.grad_enabled};
  for (const Value& value : stack) node.arguments.push_back(operand(op, value));
  {
    const ExcludeKeys inside((KeySet(Key::kTrace)));
    op.redispatch(below, stack);
  }
  for (const Value& value : stack) node.results.push_back(result(value));
  program_.nodes.push_back(std::move(node));
}

Recording::Recording(TensorSpan inputs, const TraceOptions& options)
    : included_(thread_modes.included.has(Key::kTrace)),
      excluded_(thread_modes.excluded.has(Key::kTrace)) {
  TD_CHECK(!current, "trace: this thread is being traced already");
  dispatch::set_handler(Key::kTrace, handle);
  autocast::clear_cache();  // a conversion made before is none of the program's calls
  tracer_ = std::make_unique<Tracer>(inputs, options);
  current = tracer_.get();
  thread_modes.included = thread_modes.included | Key::kTrace;
  thread_modes.excluded = thread_modes.excluded - Key::kTrace;
}

void Recording::stop() {
  if (current != tracer_.get()) return;
  current = nullptr;
  if (!included_) thread_modes.included = thread_modes.included - Key::kTrace;
  if (excluded_) thread_modes.excluded = thread_modes.excluded | Key::kTrace;
}

Recording::~Recording() {
  if (tracer_) stop();
}

Program Recording::finish(TensorSpan outputs) {
  Program program = tracer_->finish(outputs);
  stop();
  return program;
}

Program trace(const std::function<TensorList(TensorSpan)>& function, TensorSpan inputs,
              const TraceOptions& options) {
  Recording recording(inputs, options);
  return recording.finish(function(inputs));
}

bool is_tracing() {
  return current && (thread_modes.included - thread_modes.excluded).has(Key::kTrace);
}

}  // namespace taeda::jit
