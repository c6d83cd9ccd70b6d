// Scratch<T>: uninitialised working memory for the length of a scope, from the caching allocator.
#pragma once

#include "taeda/storage.h"

namespace taeda::cpu {

template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count)
      : storage_(count > 0
                     ? Storage::allocate(count * static_cast<int64_t>(sizeof(T)), DeviceType::kCPU)
                     : nullptr) {}
  T* data() const { return storage_ ? static_cast<T*>(storage_->data()) : nullptr; }
  T& operator[](int64_t i) const { return data()[i]; }

 private:
  Ref<Storage> storage_;
};

}  // namespace taeda::cpu
