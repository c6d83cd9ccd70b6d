// Dispatch keys: what a call must pass through before it reaches a device kernel.
//
// x.mul(y) of two tensors of which one requires grad has the keys {kCPU, kAutograd}: the handler of
// kAutograd records a node and calls mul again without its key, which leads to the CPU's handler.
// Programs meet keys where they register operators (operator.h) and in src/ops only.
//
// A tensor carries a set of keys; an operator takes the union over its tensor arguments, adds the
// keys that the calling thread includes, removes those that it excludes, and jumps to the handler
// of the highest one. Each handler removes its key and calls again. That costs a few instructions a
// tensor and one jump, whatever the number of keys (docs/notes/dispatch.md); PyTorch's
// DispatchKeySet is the model.
#pragma once

#include <bit>
#include <cstdint>

namespace taeda {

// In the order of priority, lowest first: devices, then what wraps them. The order is PyTorch's:
// Python code that replaces kernels lies below autograd, so that what it computes is recorded as
// the operator it stands for; autocast above, so that its conversions are recorded; the profiler
// sees the call as the program made it. A batched tensor's own history and tangents are those of
// transforms inside vmap; the ones outside are on the tensor it stands for, below.
enum class Key : uint8_t {
  kCPU,
  kMeta,
  kCUDA,
  kSparse,         // sparse tensors, which are made of others (src/ops/sparse)
  kPython,         // __torch_dispatch__ of a mode or of an argument's class
  kFunctionalize,  // writes in place as new tensors
  kConjugate,      // the elements are the conjugates of what lies in memory (ops/math_bits.h)
  kNegative,       // ... their negatives
  kBatched,        // vmap, on tensors that stand for a batch; the thread includes it meanwhile
  kAutograd,       // history, on tensors whose history matters
  kForward,        // tangents, on tensors that carry one
  kTrace,          // writes down the calls
  kAutocast,       // converts arguments to the dtype of the operator's entry
  kProfile,        // times the calls
};
inline constexpr int kNumKeys = 14;

// A set of keys, one bit each, by value. The order of keys is that of their bits, so the highest is
// found by one instruction.
//
//   const KeySet keys = KeySet(Key::kCPU) | Key::kAutograd;
//   assert(keys.has(Key::kAutograd) && keys.highest() == static_cast<int>(Key::kAutograd));
//   assert(keys - Key::kAutograd == KeySet(Key::kCPU));
class KeySet {
 public:
  constexpr KeySet() = default;
  constexpr KeySet(Key key) : bits_(1u << static_cast<int>(key)) {}
  constexpr bool has(Key key) const { return bits_ >> static_cast<int>(key) & 1u; }
  constexpr bool empty() const { return bits_ == 0; }
  // The key with the highest priority as a number, -1 of the empty set.
  [[gnu::always_inline]] constexpr int highest() const { return std::bit_width(bits_) - 1; }
  friend constexpr KeySet operator|(KeySet a, KeySet b) { return KeySet(a.bits_ | b.bits_); }
  friend constexpr KeySet operator&(KeySet a, KeySet b) { return KeySet(a.bits_ & b.bits_); }
  // a without b
  friend constexpr KeySet operator-(KeySet a, KeySet b) { return KeySet(a.bits_ & ~b.bits_); }
  friend constexpr bool operator==(KeySet a, KeySet b) = default;
  // The keys of lower priority than `key`.
  static constexpr KeySet below(Key key) { return KeySet((1u << static_cast<int>(key)) - 1); }

 private:
  explicit constexpr KeySet(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

inline constexpr KeySet kDeviceKeys = KeySet(Key::kCPU) | Key::kMeta | Key::kCUDA;
// The bits of conj() and of the imaginary part of a conjugate, which views pass on.
inline constexpr KeySet kMathBits = KeySet(Key::kConjugate) | Key::kNegative;
inline constexpr KeySet kDifferentiationKeys = KeySet(Key::kAutograd) | Key::kForward;
// Keys with one handler for all operators (src/ops/modes.h); the others have generated ones.
inline constexpr KeySet kModeKeys = KeySet(Key::kSparse) | Key::kPython | Key::kFunctionalize |
                                    kMathBits | Key::kTrace | Key::kAutocast | Key::kBatched |
                                    Key::kProfile;
// Those that see a composite operator as a whole and not only what it is made of.
inline constexpr KeySet kCompositeKeys = KeySet(Key::kTrace) | Key::kAutocast | Key::kProfile;
// Those that see a factory, which makes its result by itself.
inline constexpr KeySet kLeafKeys =
    kCompositeKeys | Key::kSparse | Key::kPython | Key::kFunctionalize | Key::kBatched;

// The calling thread's modes. Each operator of this thread adds the `included` keys to those of its
// arguments and skips the `excluded` ones. Programs switch modes by the scopes made for them
// (NoGrad, InferenceMode, start_profile); these are for whoever writes a handler. Modes go along to
// the threads that backward hands its work to, and to no others.
struct ThreadModes {
  KeySet excluded;
  KeySet included;
  bool grad_enabled = true;
  bool inference = false;
};

// constinit: nothing runs when a thread begins, so that no access has to ask whether it has run.
#if defined(__GNUC__)
extern constinit thread_local ThreadModes thread_modes __attribute__((tls_model("initial-exec")));
#else
extern constinit thread_local ThreadModes thread_modes;
#endif

// Skips `keys` on this thread until the end of the scope: a handler that calls the operator again
// does so below itself. kMathBits stay: they say what a tensor's elements are.
//
//   const Tensor x = ones({2}).requires_grad_();
//   const ExcludeKeys below(Key::kAutograd);
//   assert(!(x * 2).requires_grad());
class ExcludeKeys {
 public:
  explicit ExcludeKeys(KeySet keys) : saved_(thread_modes.excluded) {
    thread_modes.excluded = saved_ | (keys - kMathBits);
  }
  ~ExcludeKeys() { thread_modes.excluded = saved_; }
  ExcludeKeys(const ExcludeKeys&) = delete;
  ExcludeKeys& operator=(const ExcludeKeys&) = delete;

 private:
  KeySet saved_;
};

// Sends every operator of this thread through the handlers of `keys` until the end of the scope. A
// key that is excluded as well stays excluded. A key without a handler is passed by.
//
//   const IncludeKeys traced(Key::kTrace);
//   assert(thread_modes.included.has(Key::kTrace) && ones({2}).numel() == 2);
class IncludeKeys {
 public:
  explicit IncludeKeys(KeySet keys) : saved_(thread_modes.included) {
    thread_modes.included = saved_ | keys;
  }
  ~IncludeKeys() { thread_modes.included = saved_; }
  IncludeKeys(const IncludeKeys&) = delete;
  IncludeKeys& operator=(const IncludeKeys&) = delete;

 private:
  KeySet saved_;
};

}  // namespace taeda
