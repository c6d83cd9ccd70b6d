// What the oneDNN adapters share: the engine, a bounded cache of compiled primitives, execution on
// this thread.
//
// Creating a primitive costs from 5 us (found in oneDNN's own cache) to 10 ms (compiled); finding
// one here costs a hash of its key. Primitives keep no state: one may run on several threads at
// once, each with its own scratchpad.
#pragma once

#include <dnnl.hpp>
#include <list>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/cpu/gemm/onednn_scope.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/view.h"

namespace taeda::cpu::onednn {

dnnl::engine& engine();
dnnl::stream& stream();  // this thread's

// Whether it has kernels with instructions for bf16 here (AVX-512 BF16, AMX) and TAEDA_CPU allows
// them.
bool multiplies_bf16();

dnnl::memory::data_type type_of(DType dtype);
dnnl::memory::dims dims_of(IntSpan values);
// A memory with the view's sizes and strides.
dnnl::memory::desc desc_of(const View& v);

inline dnnl::memory memory_at(const dnnl::memory::desc& desc, void* data) {
  return {desc, engine(), data};
}

// A primitive and the size of its scratchpad; empty where oneDNN has nothing to offer.
struct Compiled {
  dnnl::primitive primitive;
  size_t scratch_bytes = 0;
  bool moves_stack = false;
  explicit operator bool() const { return static_cast<bool>(primitive); }
  void run(std::unordered_map<int, dnnl::memory> arguments) const;
};

// What is asked of each primitive: memory to work in is ours.
dnnl::primitive_attr own_scratchpad();

// Counts a compiled primitive (base/implementations.h).
void count_implementation(const dnnl::primitive_desc_base& pd);

// oneDNN answers every request; where it has no fast way, by loops that go element by element
// through the layouts' formulas (`ref:any`) and take a thousand times as long.
inline bool is_reference(const dnnl::primitive_desc_base& pd) {
  return std::string_view(pd.impl_info_str()).starts_with("ref");
}

// The products of f32 inside of some convolutions (`gemm:jit`, oneDNN 3.2) let the stack
// pointer point to memory of malloc's: the frame of a signal that came meanwhile would overwrite
// what lies before it.
inline bool moves_stack(const dnnl::primitive_desc_base& pd) {
  return std::string_view(pd.impl_info_str()).find("gemm:jit") != std::string_view::npos;
}

// Empty where the descriptor is, or where only the reference implementation fits it.
template <class Primitive>
Compiled compile(const typename Primitive::primitive_desc& pd) {
  if (!pd || is_reference(pd)) return {};
  count_implementation(pd);
  return {Primitive(pd), pd.scratchpad_desc().get_size(), moves_stack(pd)};
}

// Copies between layouts and element types.
void reorder(const dnnl::memory::desc& from, const void* source, const dnnl::memory::desc& to,
             void* target);

// A thread-safe map from integer keys to shared values that forgets the least recently used.
template <class Value>
class Cache {
 public:
  using Key = std::vector<int64_t>;
  explicit Cache(size_t capacity) : capacity_(capacity) {}

  // The value of `key`; make() builds it outside the lock when it is not there.
  template <class Make>
  std::shared_ptr<const Value> get(const Key& key, const Make& make) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = index_.find(key);
      if (found != index_.end()) {
        entries_.splice(entries_.begin(), entries_, found->second);
        return found->second->second;
      }
    }
    std::shared_ptr<const Value> value = make();
    const std::lock_guard lock(mutex_);
    const auto [position, fresh] = index_.try_emplace(key);
    if (!fresh) return position->second->second;
    entries_.emplace_front(key, value);
    position->second = entries_.begin();
    if (entries_.size() > capacity_) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    return value;
  }

 private:
  struct Hash {
    size_t operator()(const Key& key) const {
      uint64_t h = 0x9e3779b97f4a7c15u;
      for (const int64_t v : key)
        h = (h ^ static_cast<uint64_t>(v)) * 0xff51afd7ed558ccdu, h ^= h >> 29;
      return h;
    }
  };
  using Entry = std::pair<Key, std::shared_ptr<const Value>>;

  size_t capacity_;
  std::mutex mutex_;
  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<Key, typename std::list<Entry>::iterator, Hash> index_;
};

}  // namespace taeda::cpu::onednn
