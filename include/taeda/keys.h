// Dispatch keys: what a call must pass through before it reaches a device kernel.
//
// A tensor carries a set of keys; an operator takes the union over its tensor arguments, adds and
// removes the calling thread's own keys, and jumps to the handler of the highest one. Each handler
// removes its key and calls again.
#pragma once

#include <bit>
#include <cstdint>

namespace taeda {

// In the order of priority, lowest first: devices, then what wraps them.
enum class Key : uint8_t { kCPU, kMeta, kCUDA, kAutograd, kForward };
inline constexpr int kNumKeys = 5;

class KeySet {
 public:
  constexpr KeySet() = default;
  constexpr KeySet(Key key) : bits_(1u << static_cast<int>(key)) {}
  constexpr bool has(Key key) const { return bits_ >> static_cast<int>(key) & 1u; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr int highest() const { return std::bit_width(bits_) - 1; }
  friend constexpr KeySet operator|(KeySet a, KeySet b) { return KeySet(a.bits_ | b.bits_); }
  friend constexpr KeySet operator&(KeySet a, KeySet b) { return KeySet(a.bits_ & b.bits_); }
  // a without b
  friend constexpr KeySet operator-(KeySet a, KeySet b) { return KeySet(a.bits_ & ~b.bits_); }
  friend constexpr bool operator==(KeySet a, KeySet b) = default;

 private:
  explicit constexpr KeySet(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

inline constexpr KeySet kDeviceKeys = KeySet(Key::kCPU) | Key::kMeta | Key::kCUDA;

// The calling thread's modes. `excluded` keys are skipped by every operator of this thread.
struct ThreadModes {
  KeySet excluded;
  bool grad_enabled = true;
  bool inference = false;
  bool autocast = false;  // operators with an `autocast:` entry convert their arguments first
};

#if defined(__GNUC__)
extern thread_local ThreadModes thread_modes __attribute__((tls_model("initial-exec")));
#else
extern thread_local ThreadModes thread_modes;
#endif

// Skips `keys` on this thread until the end of the scope.
class ExcludeKeys {
 public:
  explicit ExcludeKeys(KeySet keys) : saved_(thread_modes.excluded) {
    thread_modes.excluded = saved_ | keys;
  }
  ~ExcludeKeys() { thread_modes.excluded = saved_; }
  ExcludeKeys(const ExcludeKeys&) = delete;
  ExcludeKeys& operator=(const ExcludeKeys&) = delete;

 private:
  KeySet saved_;
};

}  // namespace taeda
