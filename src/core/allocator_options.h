// AllocatorOptions: what PYTORCH_CUDA_ALLOC_CONF can say of a caching allocator.
//
// The text is a list of `key:value` by commas, with PyTorch's keys and bounds. A key that PyTorch
// does not have, and a value that it would refuse, raise its ValueError; what is cut short raises
// ValueError, too.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace taeda {

struct AllocatorOptions {
  static constexpr int64_t kMiB = 1 << 20;

  int64_t max_split_bytes = INT64_MAX;  // larger blocks are not split, and serve no smaller request
  int64_t max_non_split_rounding = 20 * kMiB;  // what such a block may be larger than a request
  int64_t large_segment_bytes = 20 * kMiB;     // of segments that requests of 1 to 10 MiB share
  double garbage_collection_threshold = 0;     // of the memory that may be used; 0: never
  double memory_fraction = 1;                  // of the device's memory
  bool throw_before_device = false;            // refuse beyond the fraction without freeing first
  bool expandable_segments = false;
  // Requests of 2^(20 + i) bytes and more are rounded up to so many steps between powers of two
  // (the first one serves smaller ones, too, the last one larger); 0 and 1: not.
  std::array<int64_t, 16> roundup_divisions{};

  bool pinned_by_registering = false;  // pinned memory: the system's, registered with the driver
  bool pinned_background_threads = false;
  int64_t pinned_register_threads = 1;
  int64_t pinned_reserve_bytes = 0;            // one block that smaller ones are cut from
  int64_t pinned_max_round_bytes = INT64_MAX;  // larger ones are rounded to pages only
  std::string text;                            // as it was given

  bool rounds_up() const;
  // A request in the sizes that the options ask for, a multiple of `rounding`.
  int64_t rounded(int64_t bytes, int64_t rounding) const;
};

// Changes what `text` names; the rest keeps its defaults.
AllocatorOptions parse_allocator_options(std::string_view text);

}  // namespace taeda
