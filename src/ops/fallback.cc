#include "ops/fallback.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>

#include "core/device_memory.h"
#include "core/layout.h"
#include "ops/allocate.h"
#include "ops/boxing.h"
#include "ops/contract.h"
#include "ops/operator.h"
#include "taeda/generator.h"
#include "taeda/warning.h"

namespace taeda::fallback {
namespace {

constexpr int64_t kAlignment = 16;  // of the largest element

std::atomic<Policy> policy{Policy::kWarn};

struct Counts {
  std::mutex lock;
  std::map<std::string, int64_t, std::less<>> calls;
};
Counts& process_counts() {
  static Counts* const counts = new Counts;  // lives for ever: threads may outlive main()
  return *counts;
}

// Whether this is the operator's first call.
bool count(std::string_view op) {
  Counts& counts = process_counts();
  const std::scoped_lock guard(counts.lock);
  return counts.calls[std::string(op)]++ == 0;
}

void announce(std::string_view op, Device device) {
  const bool first = count(op);
  switch (policy.load(std::memory_order_relaxed)) {
    case Policy::kQuiet:
      return;
    case Policy::kRefuse:
      fail(ErrorKind::kNotImplemented, "{} has no kernel for device {}", op, device);
    case Policy::kWarn:
      if (first)
        warn(format("{} has no kernel for device {} and runs on the CPU, which is slow", op,
                    device));
  }
}

// The names of the arguments that hold tensors, single ones in front of lists.
std::vector<std::string> argument_names(const OperatorRecord& record) {
  std::vector<std::string> names, lists;
  if (record.has(OperatorRecord::kInto)) names.emplace_back("out");
  for (const SchemaArgument& argument : record.form(Operator::Form::kPlain).schema().arguments) {
    if (argument.type.is_tensor()) names.push_back(argument.name);
    if (argument.type.is_tensors()) lists.push_back(argument.name);
  }
  names.insert(names.end(), lists.begin(), lists.end());
  return names;
}

bool on_device(const Tensor& t) {
  return t.defined() && !t.device().is_cpu() && has_memory(t.device());
}

// Bytes of its storage that a tensor with elements looks at.
struct Range {
  explicit Range(const Tensor& t)
      : begin(t.storage_offset() * t.itemsize() / kAlignment * kAlignment),
        end(storage_bytes_needed(t.sizes(), t.strides(), t.storage_offset(), t.dtype())) {}
  int64_t begin, end;
};

Tensor with_layout(Ref<Storage> storage, const Tensor& like, Device device, int64_t offset) {
  auto impl = make_ref<TensorImpl>(std::move(storage), like.dtype(), device);
  impl->set_layout(like.sizes(), like.strides(), offset);
  return Tensor(std::move(impl));
}

// Where `t` lies once its storage begins `bytes` later.
int64_t shifted(const Tensor& t, int64_t bytes) {
  return t.storage_offset() + bytes / t.itemsize();
}

}  // namespace

void Call::begin() {
  const auto each = [&](const auto& body) {
    for (const Tensor* t : given_) body(*t);
    for (const TensorSpan list : given_lists_)
      for (const Tensor& t : list) body(t);
  };
  each([&](const Tensor& t) {
    if (on_device(t) && device_.is_cpu()) device_ = t.device();
  });
  if (!record_.has(OperatorRecord::kAnyDevices)) check_devices();
  announce(short_name(record_.name()), device_);
  each([&](const Tensor& t) { reserve(t); });
  for (Mirror& m : mirrors_) {
    m.host = Storage::allocate(m.end - m.begin, DeviceType::kCPU);
    copy_memory(m.host->data(), DeviceType::kCPU, static_cast<char*>(m.device->data()) + m.begin,
                m.device->device(), m.end - m.begin);
    if (!m.device->writable()) m.host->set_read_only();
    if (!m.device->resizable()) m.host->forbid_resize();
  }
  for (const Tensor* t : given_) tensors_.push_back(mirrored(*t));
  for (const TensorSpan list : given_lists_) {
    TensorList& mirrors = lists_.emplace_back();
    for (const Tensor& t : list) mirrors.push_back(mirrored(t));
  }
}

Generator* Call::generator(Generator* given) const {
  Generator& of_device = generator_or_default(given, device_);
  const std::scoped_lock guard(of_device.mutex());
  return &of_device.twister();
}

// One device for all; besides it 0-d CPU tensors for pointwise operators, and lists of indices on
// the CPU.
void Call::check_devices() const {
  const auto check = [&](const Tensor& t, size_t i, bool cpu_allowed) {
    if (!t.defined() || t.device() == device_ || t.impl()->wrapped_number) return;
    if (!(cpu_allowed && t.device().is_cpu()))
      contract::fail_device(short_name(record_.name()), argument_names(record_)[i], device_,
                            t.device());
  };
  const bool indices = std::strchr(boxing::letters(record_), 'l');
  const size_t first_number = record_.has(OperatorRecord::kInto) ? 0 : indices ? 1 : given_.size();
  for (size_t i = 0; i < given_.size(); i++)
    check(*given_[i], i, i >= first_number && given_[i]->defined() && given_[i]->dim() == 0);
  for (size_t i = 0; i < given_lists_.size(); i++)
    for (const Tensor& t : given_lists_[i]) check(t, given_.size() + i, indices);
}

const Tensor& Call::on_host(const Tensor& t) const {
  return tensors_[static_cast<size_t>(std::find(given_.begin(), given_.end(), &t) -
                                      given_.begin())];
}

TensorSpan Call::on_host(TensorSpan list) const {
  const auto same = [&](TensorSpan other) {
    return other.data() == list.data() && other.size() == list.size();
  };
  return lists_[static_cast<size_t>(std::find_if(given_lists_.begin(), given_lists_.end(), same) -
                                    given_lists_.begin())];
}

// Makes sure that a mirror holds what `t` looks at.
void Call::reserve(const Tensor& t) {
  if (!on_device(t)) return;
  const Range range(t);
  const auto at = std::find_if(mirrors_.begin(), mirrors_.end(),
                               [&](const Mirror& m) { return m.device == t.storage(); });
  if (at == mirrors_.end()) {
    mirrors_.push_back({t.storage(), {}, std::min(range.begin, range.end), range.end, &t});
  } else {
    at->begin = std::min(at->begin, range.begin);
    at->end = std::max(at->end, range.end);
  }
}

Tensor Call::mirrored(const Tensor& t) {
  if (!on_device(t)) return t;
  for (const auto& [argument, mirror] : known_)
    if (argument->is_same(t)) return mirror;
  const auto m = std::find_if(mirrors_.begin(), mirrors_.end(),
                              [&](const Mirror& m) { return m.device == t.storage(); });
  Tensor mirror = with_layout(m->host, t, DeviceType::kCPU, shifted(t, -m->begin));
  mirror.impl()->wrapped_number = t.impl()->wrapped_number;
  known_.emplace_back(&t, mirror);
  return mirror;
}

// Operators count what they write in the storage's version.
void Call::finish() {
  for (const auto& [argument, mirror] : known_) {
    if (mirror.sizes() == argument->sizes() && mirror.strides() == argument->strides()) continue;
    // A resized out=: its storage grows with it.
    const Mirror& m = *std::find_if(mirrors_.begin(), mirrors_.end(),
                                    [&](const Mirror& m) { return m.host == mirror.storage(); });
    const int64_t needed = m.begin + m.host->nbytes();
    if (needed > m.device->nbytes()) m.device->resize(needed);
    argument->impl()->set_layout(mirror.sizes(), mirror.strides(), argument->storage_offset());
  }
  for (const Mirror& m : mirrors_) {
    if (m.host->version() == 0) continue;
    const int64_t bytes = std::min(m.host->nbytes(), m.device->nbytes() - m.begin);
    copy_memory(static_cast<char*>(m.device->data()) + m.begin, m.device->device(), m.host->data(),
                DeviceType::kCPU, bytes);
    m.owner->impl()->bump_version();
  }
}

Tensor Call::moved(Tensor result) {
  if (!result.defined() || !result.device().is_cpu()) return result;
  for (const auto& [argument, mirror] : known_)
    if (mirror.is_same(result)) return *argument;
  for (const Mirror& m : mirrors_) {
    if (m.host == result.storage())
      return with_layout(m.device, result, m.device->device(), shifted(result, m.begin));
  }
  const Range range(result);
  const int64_t begin = std::min(range.begin, range.end), bytes = range.end - begin;
  Ref<Storage> storage = Storage::allocate(bytes, device_);
  copy_memory(storage->data(), device_, static_cast<char*>(result.storage()->data()) + begin,
              DeviceType::kCPU, bytes);
  const int64_t offset = result.numel() ? shifted(result, -begin) : 0;
  return with_layout(std::move(storage), result, device_, offset);
}

TensorList Call::moved(TensorList results) {
  for (Tensor& t : results) t = moved(std::move(t));
  return results;
}

std::vector<std::pair<std::string, int64_t>> counts() {
  Counts& counts = process_counts();
  const std::scoped_lock guard(counts.lock);
  return {counts.calls.begin(), counts.calls.end()};
}

void reset_counts() {
  Counts& counts = process_counts();
  const std::scoped_lock guard(counts.lock);
  counts.calls.clear();
}

void set_policy(Policy value) { policy.store(value, std::memory_order_relaxed); }

}  // namespace taeda::fallback
