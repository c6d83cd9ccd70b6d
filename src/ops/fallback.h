// Operators on a device that has no kernels for them: they run on the CPU.
//
// A handler table holds fallback::handler for such an operator: it makes a Call of the arguments,
// hands their mirrors in host memory to the CPU's handler, and sends back what came of it.
//
// The device of the arguments is waited for, so this is for correctness, not speed. Each call is
// counted, and the first of each operator warns.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ops/modes.h"
#include "taeda/tensor.h"

namespace taeda::fallback {

class Call {
 public:
  explicit Call(const OperatorRecord& record) : record_(record) {}

  // Takes up the arguments, which may be undefined tensors; others than tensors mean nothing here.
  void add(const Tensor& t) { given_.push_back(&t); }
  void add(TensorSpan list) { given_lists_.push_back(list); }
  template <class T>
  void add(const T&) {}
  // Copies them. RuntimeError where they lie on devices that may not meet.
  void begin();

  // What the CPU gets for an argument.
  const Tensor& on_host(const Tensor& t) const;
  TensorSpan on_host(TensorSpan list) const;
  Generator* on_host(Generator* given) const { return generator(given); }
  template <class T>
  const T& on_host(const T& value) const {
    return value;
  }

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

  void check_devices() const;
  // What the CPU draws from in the place of the device's generator.
  Generator* generator(Generator* given) const;
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

  const OperatorRecord& record_;
  std::vector<const Tensor*> given_;
  std::vector<TensorSpan> given_lists_;
  Device device_;
  std::vector<Mirror> mirrors_;
  std::vector<std::pair<const Tensor*, Tensor>> known_;  // arguments on the device, their mirrors
  TensorList tensors_;
  std::vector<TensorList> lists_;
};

// The handler of the operator of `record`, which `on_cpu` computes there.
template <const OperatorRecord& record, auto on_cpu, class R, class... Args>
[[gnu::visibility("hidden"), gnu::cold]] R handler(KeySet, Args... args) {
  Call call(record);
  (call.add(args), ...);
  call.begin();
  return call.back(on_cpu(KeySet(Key::kCPU), call.on_host(args)...));
}

// How often each operator has run this way in this process, by name.
std::vector<std::pair<std::string, int64_t>> counts();
void reset_counts();

// What the first call of an operator does: warns, nothing, or raises NotImplementedError (as every
// later one does).
enum class Policy : uint8_t { kWarn, kQuiet, kRefuse };
void set_policy(Policy policy);

}  // namespace taeda::fallback
