// Device memory that a launch needs for itself: free again for what the stream runs next.
#pragma once

#include "device/api.h"
#include "taeda/storage.h"

namespace taeda::cuda {

class Workspace {
 public:
  Workspace(Device device, int64_t bytes)
      : storage_(Storage::allocate(bytes, device)), bytes_(bytes) {}
  char* data() const { return static_cast<char*>(storage_->data()); }
  Access access(bool writes) const { return {data(), bytes_, writes}; }

 private:
  Ref<Storage> storage_;
  int64_t bytes_;
};

}  // namespace taeda::cuda
