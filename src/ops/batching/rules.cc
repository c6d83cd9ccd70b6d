#include "ops/batching/rules.h"

#include <cstring>

#include "core/host_copy.h"
#include "op/arange.h"
#include "op/cat.h"
#include "op/empty.h"
#include "op/movedim.h"
#include "op/reshape.h"
#include "op/select.h"
#include "op/stack.h"
#include "op/to_dtype.h"
#include "op/unsqueeze.h"
#include "op/view.h"
#include "ops/boxing.h"
#include "ops/rules.h"
#include "taeda/generator.h"

namespace taeda::batching {
namespace {

DimVector joined(int64_t first, IntSpan rest) {
  DimVector all{first};
  for (const int64_t n : rest) all.push_back(n);
  return all;
}
IntSpan behind(IntSpan sizes, size_t count) { return sizes.slice(count, sizes.size() - count); }

// [a, b, rest] as [a * b, rest]; the product is written so that empty tensors work.
Tensor merge(const Tensor& t) {
  return op::reshape(t, joined(t.size(0) * t.size(1), behind(t.sizes(), 2)));
}

// An argument, its letter in the record and its place in the schema.
struct Argument {
  char letter;
  const SchemaArgument& schema;
  Value& value;
};
template <class Visit>
void each_argument(const Operator& op, Stack& args, const Visit& visit) {
  size_t i = 0;
  for (const char* letter = boxing::letters(*op.record()); *letter; letter++) {
    visit(Argument{*letter, op.schema().arguments[i], args[i]});
    i += *letter == 'o' ? 4 : 1;
  }
}

}  // namespace

Tensor pad_dims(const Tensor& value, int64_t ndim) {
  if (value.dim() > ndim) return value;
  DimVector sizes{value.size(0)};
  for (int64_t missing = ndim + 1 - value.dim(); missing > 0; missing--) sizes.push_back(1);
  for (const int64_t n : behind(value.sizes(), 1)) sizes.push_back(n);
  return op::view(value, sizes);
}

Tensor Call::with_batch(size_t i) const {
  const Tensor found = value(i);
  return found.defined() || !tensor(i).defined() ? found : expand_batch(tensor(i), size());
}

void Call::give(const Tensor& result) {
  Stack results{result};
  finish(*this, results);
}

Tensor sample_numbers(const Call& call, int64_t ndim, Device device) {
  TensorOptions options(DType::kInt64);
  options.device = device;
  const Tensor numbers = op::arange(Scalar(call.size()), options);
  DimVector sizes(static_cast<size_t>(ndim), 1);
  sizes[0] = call.size();
  return op::view(numbers, sizes);
}

Tensor fold(const Tensor& value) { return merge(value); }
Tensor unfold(const Tensor& folded, int64_t size) {
  DimVector sizes{size, size == 0 ? 0 : folded.size(0) / size};
  for (const int64_t n : behind(folded.sizes(), 1)) sizes.push_back(n);
  return op::reshape(folded, sizes);
}

Tensor fold_channels(const Tensor& value) {
  if (value.dim() <= 2) return merge(value);
  const Tensor moved = op::movedim(value, DimVector{0}, DimVector{1});
  DimVector sizes{moved.size(0), moved.size(1) * moved.size(2)};
  for (const int64_t n : behind(moved.sizes(), 3)) sizes.push_back(n);
  return op::reshape(moved, sizes);
}
Tensor unfold_channels(const Tensor& folded, int64_t size) {
  if (folded.dim() < 2) return unfold(folded, size);
  DimVector sizes{folded.size(0), size, size == 0 ? 0 : folded.size(1) / size};
  for (const int64_t n : behind(folded.sizes(), 2)) sizes.push_back(n);
  return op::movedim(op::reshape(folded, sizes), DimVector{1}, DimVector{0});
}

// --- sample by sample ---

namespace {

Tensor empty_of(IntSpan sizes, const Tensor& like, Device device) {
  TensorOptions options(like.dtype());
  options.device = device;
  return op::empty(sizes, options, std::nullopt);
}

// A batch of no samples: what the operator makes of tensors without elements says which sizes and
// dtypes its results have.
void by_no_samples(Call& call) {
  Device device;
  Stack results = call.stack;
  {
    const Outside outside(call.level);
    each_tensor(call.stack, [&](const Tensor& t) { device = t.device(); });
    for (Value& argument : results)
      change_tensors(argument, [](const Tensor& t) {
        return empty_of(t.sizes(), t, Device(DeviceType::kMeta));
      });
    call.op.call(results);
    for (Value& result : results)
      change_tensors(result,
                     [&](const Tensor& t) { return empty_of(joined(0, t.sizes()), t, device); });
  }
  finish(call, results);
}

}  // namespace

void by_samples(Call& call, const std::function<void()>& before_each) {
  if (call.size() == 0) return by_no_samples(call);
  std::vector<Stack> samples;
  {
    const Outside outside(call.level);
    for (int64_t i = 0; i < call.size(); i++) {
      before_each();
      Stack args = call.stack;
      for (Value& argument : args)
        change_tensors(argument, [&](const Tensor& t) {
          const Tensor value = value_at(t, call.level);
          return value.defined() ? op::select(value, 0, i) : t;
        });
      call.op.call(args);
      samples.push_back(std::move(args));
    }
  }
  Stack results;
  const Outside outside(call.level);
  for (size_t k = 0; k < samples[0].size(); k++) {
    const Value& one = samples[0][k];
    TD_CHECK(one.is_tensor() || one.is_tensors() || one.is_none(),
             "vmap: {} returns a {} for each sample, which vmap cannot stand for", call.op.name(),
             one.type_name());
    const auto stacked = [&](const auto& tensor_of) {
      TensorList parts;
      for (const Stack& sample : samples) parts.push_back(tensor_of(sample[k]));
      return op::stack(parts, 0);
    };
    if (call.op.schema().results[k].alias.written || one.is_none()) {
      results.push_back(one);
    } else if (one.is_tensor()) {
      results.emplace_back(stacked([](const Value& v) { return v.tensor(); }));
    } else {
      TensorList list;
      for (size_t j = 0; j < one.tensors().size(); j++)
        list.push_back(stacked([&](const Value& v) { return v.tensors()[j]; }));
      results.emplace_back(std::move(list));
    }
  }
  finish(call, results);
}

// --- pointwise ---

void pointwise(Call& call) {
  int64_t ndim = 0;
  rules::Promotion promotion;
  each_tensor(call.stack, [&](const Tensor& t) {
    ndim = std::max(ndim, t.dim());
    promotion.add(t);
  });
  const DType common = promotion.result();
  const Schema& schema = call.op.schema();
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    for (size_t i = 0; i < args.size(); i++) {
      change_tensors(args[i], [&](const Tensor& t) {
        const Tensor value = value_at(t, call.level);
        if (!value.defined())  // as the batch makes vectors of numbers, so that both promote alike
          return ndim == 0 && !t.impl()->wrapped_number ? op::unsqueeze(t, 0) : t;
        // Without the batch, a tensor without dimensions does not widen those with some.
        const bool yields =
            t.dim() == 0 && ndim > 0 && t.dtype() != common && !schema.arguments[i].alias.written &&
            is_floating(t.dtype()) == is_floating(common) &&
            is_complex(t.dtype()) == is_complex(common) && t.dtype() != DType::kBool;
        return pad_dims(yields ? op::to_dtype(value, common, false, std::nullopt) : value, ndim);
      });
    }
    run(call, args);
  }
  finish(call, args);
}

// --- leading dimensions ---

namespace {

int64_t dims_of_first(const Stack& stack) {
  for (const Value& value : stack) {
    if (value.is_tensor()) return value.tensor().dim();
    if (!value.is_tensors()) continue;
    int64_t dims = 0;
    for (const Tensor& t : value.tensors()) dims = std::max(dims, t.dim());
    return dims;
  }
  return 0;
}

// An integer that nobody has wrapped: from the end it means the same with the batch in front.
Value behind_batch(int64_t dim, int64_t ndim) {
  TD_CHECK_INDEX(dim >= -(ndim + 1) && dim <= ndim,
                 "Dimension out of range (expected to be in range of [{}, {}], but got {})", -ndim,
                 ndim - 1, dim);
  return dim < 0 ? dim : dim + 1;
}

// dims with the batch in front; where a list means all of them, all of a sample's.
Value shifted(const Argument& argument, int64_t ndim, bool reduces) {
  DimVector dims;
  if (!argument.value.is_none())
    for (const int64_t dim : argument.value.ints()) dims.push_back(dim + 1);
  const bool all = argument.value.is_none() || (dims.size() == 0 && reduces);
  for (int64_t dim = 1; all && dim <= std::max<int64_t>(ndim, 1); dim++) dims.push_back(dim);
  return IntSpan(dims);
}

// What `leading` makes of the arguments that are no tensors.
class Shift {
 public:
  explicit Shift(const Call& call) : call_(call), ndim_(dims_of_first(call.stack)) {
    const Schema& schema = call.op.schema();
    const int keepdim = schema.find("keepdim");
    has_keepdim_ = keepdim >= 0;
    keeps_ = has_keepdim_ && call.stack[static_cast<size_t>(keepdim)].boolean();
  }

  // Whether samples without dimensions must have one, since the operator counts dimensions.
  bool lifts() const {
    return ndim_ == 0 && std::strpbrk(boxing::letters(*call_.op.record()), "xXzZ") != nullptr;
  }
  // Whether the operator takes a sample as a vector.
  bool flattens() const { return flattens_; }

  void apply(Stack& args) {
    each_argument(call_.op, args, [&](const Argument& argument) {
      switch (argument.letter) {
        case 'x':
          argument.value = argument.value.integer() + 1;
          break;
        case 'X':
          flattens_ = argument.value.is_none();
          argument.value = flattens_ ? 1 : argument.value.integer() + 1;
          break;
        case 'u':
          argument.value = behind_batch(argument.value.integer(), ndim_);
          break;
        case 'z':
        case 'Z':
          argument.value = shifted(argument, ndim_, has_keepdim_ || argument.letter == 'Z');
          break;
        case 'e':
          argument.value = IntSpan(joined(call_.size(), IntSpan(argument.value.ints())));
          break;
        default:
          break;
      }
    });
  }

  // A result with the dimensions that a sample's has.
  Tensor restore(const Tensor& result) const {
    const int at = call_.op.schema().find("index");  // a tensor has the result's dimensions
    const Value* const index = at >= 0 ? &call_.stack[static_cast<size_t>(at)] : nullptr;
    const bool vector = index && index->is_tensor() && index->tensor().dim() > 0;
    if (lifts() && result.numel() == call_.size() && result.dim() > 1 && !vector)
      return op::select(result, 1, 0);
    if (!flattens_ || !keeps_) return result;
    return pad_dims(op::reshape(result, {call_.size()}), ndim_);
  }

 private:
  const Call& call_;
  const int64_t ndim_;
  bool has_keepdim_ = false, keeps_ = false, flattens_ = false;
};

bool is_number(const Value& value) { return value.is_tensor() && value.tensor().dim() == 0; }

enum class Others { kExpand, kLeave, kLeaveIndex };

bool wants_channels_last(const Stack& stack) {
  for (const Value& value : stack)
    if (value.holds<MemoryFormat>() && (value.memory_format() == MemoryFormat::kChannelsLast ||
                                        value.memory_format() == MemoryFormat::kChannelsLast3d))
      return true;
  return false;
}

void run_leading(Call& call, Others others) {
  if (wants_channels_last(call.stack)) return folded(call);
  Stack args = call.stack;
  Shift shift(call);
  {
    const Outside outside(call.level);
    shift.apply(args);
    each_argument(call.op, args, [&](const Argument& argument) {
      const bool leave = others == Others::kLeave ||
                         (others == Others::kLeaveIndex &&
                          (argument.schema.name == "index" || is_number(argument.value)));
      change_tensors(argument.value, [&](const Tensor& t) {
        Tensor value = value_at(t, call.level);
        if (!value.defined()) {
          if (leave) return t;
          value = expand_batch(t, call.size());
        }
        if (shift.flattens()) return op::reshape(value, {call.size(), -1});
        return shift.lifts() && value.dim() == 1 ? op::unsqueeze(value, 1) : value;
      });
    });
    run(call, args);
    for (Value& result : args)
      change_tensors(result, [&](const Tensor& t) { return shift.restore(t); });
  }
  finish(call, args);
}

void otherwise(Call& call) {
  if (call.op.record()->batch_rule) return by_definition(call);
  by_samples(call);
}

}  // namespace

void leading(Call& call) { run_leading(call, Others::kExpand); }

// An empty vector goes with tensors of any dimensions, as it does without a batch.
void cat(Call& call) {
  const TensorList given = call.stack[0].tensors();
  TensorList kept;
  for (const Tensor& t : given)
    if (t.dim() != 1 || t.size(0) != 0) kept.push_back(t);
  if (kept.empty() || kept.size() == given.size()) return leading(call);
  const BelowDifferentiation below(call.level);
  DType common = kept[0].dtype();
  for (const Tensor& t : given) common = promote_types(common, t.dtype());
  const Tensor joined = op::cat(kept, call.stack[1].integer());
  call.stack = {op::to_dtype(joined, common, false, std::nullopt)};
}

void first(Call& call) {
  for (size_t i = 1; i < call.stack.size(); i++)
    if (any_batched({call.stack[i]}, call.level)) return otherwise(call);
  run_leading(call, Others::kLeave);
}

void along(Call& call) {
  const Schema& schema = call.op.schema();
  bool shared = dims_of_first(call.stack) > 0;  // the index, and a number to fill in
  for (size_t i = 1; i < call.stack.size(); i++)
    if (schema.arguments[i].name == "index" || is_number(call.stack[i]))
      shared &= !any_batched({call.stack[i]}, call.level);
  if (!shared) return by_samples(call);
  run_leading(call, Others::kLeaveIndex);
}

// --- merged with another dimension ---

namespace {

template <class Merge, class Split, class Change>
void run_merged(Call& call, const Merge& merged, const Split& split, const Change& change) {
  bool fits = true;
  each_tensor(call.stack, [&](const Tensor& t) { fits &= t.dim() > 0; });
  if (!fits) return by_samples(call);
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    each_argument(call.op, args, change);
    for (Value& argument : args)
      change_tensors(argument, [&](const Tensor& t) {
        const Tensor value = value_at(t, call.level);
        return merged(value.defined() ? value : expand_batch(t, call.size()));
      });
    run(call, args);
    for (Value& result : args)
      change_tensors(result, [&](const Tensor& t) { return split(t, call.size()); });
  }
  finish(call, args);
}

}  // namespace

void folded(Call& call) {
  run_merged(call, fold, unfold, [&](const Argument& argument) {
    if (argument.letter != 'e') return;
    Value::Ints sizes = argument.value.ints();
    sizes.at(0) *= call.size();
    argument.value = std::move(sizes);
  });
}

void by_channels(Call& call) {
  run_merged(call, fold_channels, unfold_channels, [&](const Argument& argument) {
    if (argument.schema.name == "num_groups")
      argument.value = argument.value.integer() * call.size();
  });
}

void by_definition(Call& call) {
  const OperatorRecord& record = *call.op.record();
  const BelowDifferentiation below(call.level);
  boxing::Unboxed unboxed(record, call.stack);
  boxing::Results results(call.op.schema());
  record.invoke_definition(record.batch_rule, unboxed.args(), results.pointers());
  results.push(call.stack);
}

void refuse(Call& call) {
  if (!call.op.schema().results.empty() &&
      call.op.schema().results[0].type.base != ValueType::kTensor)
    fail_value_of_samples();
  fail(ErrorKind::kRuntime,
       "vmap: we do not support batching operators whose result's shape depends on values, or that "
       "change the shape of what they are given. Attempted to vmap over {}. Please voice your "
       "use in other operators (torch.where instead of a mask).",
       call.op.qualified_name());
}

// --- random ---

namespace {

Generator& generator_of(const Call& call) {
  Device device;
  each_tensor(call.stack, [&](const Tensor& t) { device = t.device(); });
  for (const Value& value : call.stack)
    if (value.holds<Generator*>()) return *value.generator();
  return default_generator(device);
}

bool is_factory(const Call& call) {
  return std::strchr(boxing::letters(*call.op.record()), 'o') != nullptr;
}

void draw_same(Call& call) {
  if (any_batched(call.stack, call.level) &&
      !is_factory(call)) {  // each sample starts from the same state
    const Schema& schema = call.op.schema();
    TD_CHECK(
        schema.is_mutable() || call.op.record()->batch == OperatorRecord::kNoise,
        "vmap: {}: randomness='same' does not go with an argument that is vmapped over, as each "
        "sample's numbers follow from its own; draw outside of vmap, or ask for "
        "randomness='different'",
        call.op.name());
    Generator& generator = generator_of(call);
    const Tensor state = generator.get_state();
    return by_samples(call, [&] { generator.set_state(state); });
  }
  const Outside outside(call.level);
  for (Value& argument : call.stack)
    change_tensors(argument, [&](const Tensor& t) {
      const Tensor value = value_at(t, call.level);
      return value.defined() ? op::select(value, 0, 0) : t;
    });
  run(call, call.stack);
}

void draw_different(Call& call) {
  const Schema& schema = call.op.schema();
  TD_CHECK(!schema.is_mutable() || call.has_batch(0),
           "vmap: {}: cannot draw different numbers into a Tensor that is not vmapped over: all "
           "samples share it. Make it from one that is vmapped over, or ask for "
           "randomness='same'.",
           call.op.name());
  bool has_tensors = false, has_size = false;
  int64_t ndim = 0;
  each_tensor(call.stack, [&](const Tensor& t) {
    has_tensors = true;
    ndim = std::max(ndim, t.dim());
  });
  Stack args = call.stack;
  each_argument(call.op, args, [&](const Argument& argument) {
    if (argument.letter != 'e') return;
    has_size = true;
    argument.value = IntSpan(joined(call.size(), IntSpan(argument.value.ints())));
  });
  if (!has_tensors && !has_size) return by_samples(call);                 // randperm
  if (schema.find("num_samples") >= 0 && ndim == 2) return folded(call);  // multinomial
  {
    const Outside outside(call.level);
    for (Value& argument : args)
      change_tensors(argument, [&](const Tensor& t) {
        const Tensor value = value_at(t, call.level);
        return pad_dims(value.defined() ? value : expand_batch(t, call.size()), ndim);
      });
    run(call, args);
  }
  finish(call, args);
}

}  // namespace

void randomly(Call& call) {
  switch (call.level.randomness) {
    case Randomness::kError:
      fail(ErrorKind::kRuntime,
           "vmap: called random operation {} while in randomness error mode. Please either use the "
           "'same' or 'different' randomness flags on vmap or perform the randomness operation out "
           "of vmap",
           call.op.qualified_name());
    case Randomness::kSame:
      return draw_same(call);
    case Randomness::kDifferent:
      return draw_different(call);
  }
}

}  // namespace taeda::batching
