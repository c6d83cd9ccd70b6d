// How a call reaches the handlers of generic keys (autocast, profile, Python, ...), of which there
// is one each for all operators.
//
// In an operator's handler table, the slots of generic keys hold dispatch::modes, a function
// of a few instructions: it points at its arguments and calls run_modes, which does the rest from
// the operator's record. run_modes makes Values of the arguments (boxing), runs the handler and
// takes the results back. All of it is driven by one string a record, with one letter an argument.
#pragma once

#include <atomic>
#include <tuple>

#include "ops/allocate.h"
#include "taeda/operator.h"

namespace taeda {

namespace batching {
struct Call;
using Rule = void(Call& call);  // one operator's way through vmap (ops/batching/rules.h)
}  // namespace batching
namespace sparse {
struct Call;
using Rule = void(Call& call);  // one operator on sparse tensors (ops/sparse/call.h)
}  // namespace sparse

// The constant data of one entry of the operator table; in-place and out= forms are derived from
// it.
struct OperatorRecord {
  enum Flags : uint16_t {
    kDispatched = 1,        // `below` takes a KeySet first
    kInto = 2,              // then the tensor to write: one function for all three forms
    kWrites = 4,            // the first argument is written, and is the result
    kHasInplace = 8,        // NAME_ exists
    kHasOut = 16,           // out= exists
    kOutExactOverlap = 32,  // out= may not overlap an argument in part
    kOutNoOverlap = 64,     // ... or at all
    kLeaf = 256,            // a composite that makes its result by itself
    kAnyDevices = 512,      // the arguments may lie on different devices
    kElementwise = 1024,    // an element of the result depends on those at its index alone
    kOutGivesDtype = 4096,  // `dtype`, where it is not given, is that of out=
    kWhole = 16384,         // a composite that a TorchDispatchMode sees, see is_seen_whole
    kNoHistory = 32768,     // a view without the history and the tangents of its base
  };
  enum Autocast : uint8_t { kNoRule, kLower, kFloat32, kWidest, kNone };
  // How vmap runs the operator on batched tensors (ops/batching/rules.h says what each means).
  enum Batch : uint8_t {
    kLoop,
    kPointwise,
    kLeading,
    kFirst,
    kAlong,
    kFold,
    kChannels,
    kRandom,
    kNoise,
    kDefinition,
    kOwn,
    kRefuse,
  };
  // How the operator runs on sparse tensors (ops/sparse/call.h says what each means).
  enum class Sparse : uint8_t { kUnable, kValues, kLinear, kOwn, kBody };
  // How a view's base is computed from what was written to the view (VIEWS in gen/op.py); kNone:
  // the operator makes no views.
  enum class Inverse : uint8_t {
    kNone,
    kStrides,
    kSizes,
    kItself,
    kOrder,
    kDtype,
    kScatter,
    kComplex
  };
  using Function = void (*)();
  using Invoke = void (*)(Function function, const void* const* args, void* const* results);

  // The schema in the table's own types (parse_table_schema); behind its NUL one letter a C++
  // argument (boxing.cc).
  const char* text;
  Function below;    // the operator without its entry function: redispatch::NAME, composite_NAME
  Invoke invoke;     // calls a function of `below`'s type
  Function inplace;  // op::NAME_inplace, where kInto does not cover it
  Invoke invoke_inplace;
  const void* handlers;                 // the table, one function a key; null for composites
  std::atomic<const Operator*>* forms;  // the Operator of each form, once someone has asked
  Function batch_rule;  // kOwn: a batching::Rule; else the definition, where the table has one
  Invoke invoke_definition;
  sparse::Rule* sparse_rule;  // Sparse::kOwn
  uint16_t flags;
  OutDtype out_dtype;
  OutShape out_shape;
  Autocast autocast;
  Batch batch;
  Sparse sparse;
  Inverse inverse;
  uint8_t name_size, overload_size;  // of `text`, the namespace included

  bool has(Flags flag) const { return flags & flag; }
  bool draws() const { return batch == kRandom || batch == kNoise; }  // random numbers
  std::string_view name() const { return {text, name_size}; }
  std::string_view overload() const {
    return {text + name_size + (overload_size ? 1 : 0), overload_size};
  }
  OutPolicy out_policy() const { return {out_dtype, out_shape}; }
  // One of the operator's forms. Made on first use.
  const Operator& form(Operator::Form form) const;
};

// parse_schema() for a record's text: `dim`, `dtype`, `options` and such become PyTorch's types.
Schema parse_table_schema(std::string_view text);

// All records, sorted by name and overload (generated).
extern const OperatorRecord* const kOperatorRecords[];
extern const size_t kNumOperatorRecords;
// The names that Python has for the pointwise operators, with spaces between (generated).
extern const char* const kPointwiseFunctions;

namespace dispatch {

// The handler of a generic key; keys without one are passed by. Set once, by who owns the key.
void set_handler(Key key, BoxedHandler handler);
BoxedHandler handler(Key key);

// `args` are those of record.below, the KeySet first where it takes one; for a composite, the set
// stands in front of them.
void run_modes(const OperatorRecord& record, KeySet keys, const void* const* args,
               void* const* results);

template <class R>
struct ResultPointers {
  static void fill(R& result, void** out) { out[0] = &result; }
  static constexpr size_t count = 1;
};
template <class... Rs>
struct ResultPointers<std::tuple<Rs...>> {
  static void fill(std::tuple<Rs...>& result, void** out) {
    std::apply([&](auto&... r) { ((*out++ = &r), ...); }, result);
  }
  static constexpr size_t count = sizeof...(Rs);
};

template <class R>
[[gnu::noinline, gnu::cold]] R by_modes(const OperatorRecord& record, KeySet keys,
                                        const void* const* args) {
  R result{};
  void* results[ResultPointers<R>::count];
  ResultPointers<R>::fill(result, results);
  run_modes(record, keys, args, results);
  return result;
}

// A call that a generic key stops, with its arguments in the types of `record.below`.
template <class R, class... Args>
[[gnu::visibility("hidden"), gnu::noinline, gnu::cold]] R stopped(const OperatorRecord& record,
                                                                  KeySet keys,
                                                                  const Args&... args) {
  const void* const pointers[] = {&args..., nullptr};
  return by_modes<R>(record, keys, pointers);
}
// The same as a handler.
template <const OperatorRecord& record, class R, class... Args>
[[gnu::visibility("hidden"), gnu::noinline, gnu::cold]] R modes(KeySet keys, Args... args) {
  const void* const pointers[] = {&args..., nullptr};
  return by_modes<R>(record, keys, pointers);
}

// What composites and factories of every thread stop for besides: kCPU while programs have kernels
// for some of them (ops/overrides.h), else nothing.
[[gnu::visibility("hidden")]] extern constinit std::atomic<KeySet> replaced_composites;
[[gnu::always_inline]] inline KeySet replaced() {
  return replaced_composites.load(std::memory_order_relaxed);
}

// The keys that a composite stops for on this thread.
[[gnu::always_inline]] inline KeySet composite_keys() {
  return ((thread_modes.included - thread_modes.excluded) & kCompositeKeys) | replaced();
}
// Those of a composite that a mode sees as one call.
[[gnu::always_inline]] inline KeySet whole_keys() {
  return ((thread_modes.included - thread_modes.excluded) & (kCompositeKeys | Key::kPython)) |
         replaced();
}
// Whether a mode sees such a composite: where nothing is differentiated, batched or functionalized.
// Otherwise it sees the parts, for which these have rules.
bool is_seen_whole(TensorSpan arguments);
// Those that a factory stops for: it makes its result by itself, from arguments with these keys.
[[gnu::always_inline]] inline KeySet leaf_keys(KeySet keys) {
  return (((keys | thread_modes.included) - thread_modes.excluded) & kLeafKeys) | replaced();
}

template <class T>
[[gnu::visibility("hidden")]] void move_into(void* to, T& from) {
  *static_cast<T*>(to) = std::move(from);
}
template <class R, class... Args, size_t... I>
[[gnu::visibility("hidden")]] void invoke(R (*function)(Args...), const void* const* args,
                                          void* const* results, std::index_sequence<I...>) {
  const auto call = [&] {
    return function(*static_cast<const std::remove_cvref_t<Args>*>(args[I])...);
  };
  if constexpr (ResultPointers<R>::count == 1) {
    *static_cast<R*>(results[0]) = call();
  } else {
    R made = call();
    std::apply([&](auto&... parts) { (move_into(*results++, parts), ...); }, made);
  }
}

// OperatorRecord::invoke for functions of one type.
template <class R, class... Args>
[[gnu::visibility("hidden")]] void invoke(void (*function)(), const void* const* args,
                                          void* const* results) {
  invoke(reinterpret_cast<R (*)(Args...)>(function), args, results,
         std::index_sequence_for<Args...>());
}
template <class R, class... Args>
constexpr OperatorRecord::Invoke invoker(R (*)(Args...)) {
  return invoke<R, Args...>;
}

}  // namespace dispatch
}  // namespace taeda
