#include "core/memory_stats.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include "core/caching_allocator.h"
#include "taeda/error.h"

namespace taeda {

std::string bytes_text(int64_t bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 6) {
    value /= 1024;
    unit++;
  }
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.2f %s", value, units[unit]);
  return text;
}

namespace {

constexpr size_t kHolders = 5;

// "The most is held by 1.50 GiB at train.py:12 (forward), ..."; empty where nothing is known.
std::string holders_text(const OutOfMemory& what) {
  std::map<std::string, int64_t> by_place;
  for (const auto& [bytes, context] : what.holders) {
    const auto frames = context->frames();
    if (frames.empty()) continue;
    const auto& frame = frames.front();
    by_place[format("{}:{} ({})", frame.file, frame.line, frame.function)] += bytes;
  }
  std::vector<std::pair<std::string, int64_t>> places(by_place.begin(), by_place.end());
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (places.size() > kHolders) places.resize(kHolders);
  std::string text;
  for (const auto& [place, bytes] : places)
    text += format("\n  {} at {}", bytes_text(bytes), place);
  return text.empty() ? text : "\nThe most memory is held by what was allocated:" + text;
}

std::string device_usage_text(const OutOfMemory& what) {
  std::string text = " ";
  if (what.limit_bytes > 0) text += format("{} allowed; ", bytes_text(what.limit_bytes));
  text += format("Of the allocated memory {} is allocated by PyTorch, ",
                 bytes_text(what.allocated_bytes));
  if (what.private_bytes > 0)
    text += format("with {} allocated in private pools (e.g., CUDA Graphs), ",
                   bytes_text(what.private_bytes));
  return text + format(
                    "and {} is reserved by PyTorch but unallocated. If reserved but unallocated "
                    "memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:"
                    "True to avoid fragmentation.",
                    bytes_text(what.reserved_bytes - what.allocated_bytes));
}

}  // namespace

void raise_out_of_memory(const OutOfMemory& what) {
  const std::string start = format("{} out of memory. Tried to allocate {}.", what.device_name,
                                   bytes_text(what.wanted_bytes));
  if (!what.device_text.empty()) {
    fail(ErrorKind::kOutOfMemory, "{}{}{}{}", start, what.device_text, device_usage_text(what),
         holders_text(what));
  }
  fail(ErrorKind::kOutOfMemory, "{} {} are in use, {} are reserved but free{}", start,
       bytes_text(what.allocated_bytes), bytes_text(what.reserved_bytes - what.allocated_bytes),
       what.limit_bytes > 0 ? format("; the limit is {}", bytes_text(what.limit_bytes))
                            : std::string());
}

}  // namespace taeda
