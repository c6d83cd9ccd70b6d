// Operators on a device that has no kernels for them: they run on the CPU.
//
// A generated handler (fallback_NAME, gen/fallback.py) makes a Call of its arguments, hands their
// mirrors in host memory to the CPU's handler, and sends back what came of it:
//
//   fallback::Call call(info, tensors, {});
//   return call.back(device_add(KeySet(Key::kCPU), call[0], call[1]));
//
// The device of the arguments is waited for, so this is for correctness, not speed. Each call is
// counted, and the first of each operator warns.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "taeda/tensor.h"

namespace taeda::fallback {

// Which devices an operator's tensors may lie on: one; one besides 0-d CPU tensors; one besides
// lists of indices on the CPU and 0-d values there; any.
enum class Devices : uint8_t { kSame, kPointwise, kIndexed, kAny };

struct Info {
  std::string_view op;
  std::string_view arguments;  // names of the tensors, then of the lists: "self, other"
  Devices devices;
};

class Call {
 public:
  // `tensors` may hold undefined ones. RuntimeError where they lie on devices that may not meet.
  Call(const Info& info, Span<const Tensor* const> tensors, Span<const TensorSpan> lists);

  const Tensor& operator[](size_t i) const { return tensors_[i]; }
  TensorSpan list(size_t i) const { return lists_[i]; }

  // What the CPU draws from in the place of the device's generator.
  Generator* generator(Generator* given) const;

  // Copies to the device what the operator changed, and its result.
  template <class R>
  R back(R result) {
    finish();
    return moved(std::move(result));
  }

 private:
  // A part of a storage and its copy on the host, which tensors that share memory share too.
  struct Mirror {
    Ref<Storage> device, host;
    int64_t begin, end;   // bytes of `device`
    const Tensor* owner;  // the first argument on it: the one that an operator changes
  };

  void check_devices(const Info& info, Span<const Tensor* const> tensors,
                     Span<const TensorSpan> lists) const;
  void reserve(const Tensor& t);
  Tensor mirrored(const Tensor& t);
  void finish();

  Tensor moved(Tensor result);
  TensorList moved(TensorList results);
  template <class... Ts>
  std::tuple<Ts...> moved(std::tuple<Ts...> results) {
    return std::apply([&](auto&... r) { return std::tuple<Ts...>(moved(std::move(r))...); },
                      results);
  }
  template <class T>
  T moved(T number) {
    return number;
  }

  Device device_;
  std::vector<Mirror> mirrors_;
  std::vector<std::pair<const Tensor*, Tensor>> known_;  // arguments on the device, their mirrors
  TensorList tensors_;
  std::vector<TensorList> lists_;
};

// How often each operator has run this way in this process, by name.
std::vector<std::pair<std::string, int64_t>> counts();
void reset_counts();

// What the first call of an operator does: warns, nothing, or raises NotImplementedError (as every
// later one does).
enum class Policy : uint8_t { kWarn, kQuiet, kRefuse };
void set_policy(Policy policy);

}  // namespace taeda::fallback
