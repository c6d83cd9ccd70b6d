#include "core/allocator_options.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>
#include <vector>

#include "taeda/error.h"

namespace taeda {
namespace {

constexpr int64_t kMiB = AllocatorOptions::kMiB;

// The text's words; commas, colons and brackets are words of their own, blanks separate nothing.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, {}));
  };
  for (const char c : text) {
    if (c == ',' || c == ':' || c == '[' || c == ']') {
      end_word();
      words.emplace_back(1, c);
    } else if (c != ' ' && c != '\t') {
      word += c;
    }
  }
  end_word();
  return words;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : words_(words_of(text)) {}

  AllocatorOptions parse() {
    while (at_ < words_.size()) {
      if (words_[at_] == ",") {
        at_++;
        continue;
      }
      key_ = take();
      parse_value();
      TD_CHECK_VALUE(at_ == words_.size() || words_[at_] == ",",
                     "allocator config: expected a comma after the value of {}, got '{}'", key_,
                     words_[at_]);
    }
    return options_;
  }

 private:
  const std::string& take() {
    TD_CHECK_VALUE(at_ < words_.size(), "allocator config: {} lacks a value", key_);
    return words_[at_++];
  }
  void expect(std::string_view word) {
    const std::string& found = take();
    TD_CHECK_VALUE(found == word, "Expected '{}' at index {} in ConfigTokenizer but got '{}'", word,
                   at_ - 1, found);
  }
  bool next_is(std::string_view word) const { return at_ < words_.size() && words_[at_] == word; }

  template <class Number>
  Number number_of(const std::string& word) const {
    Number value{};
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, value);
    TD_CHECK_VALUE(error == std::errc() && stop == end && value >= 0,
                   "allocator config: {} takes a number, got '{}'", key_, word);
    return value;
  }
  int64_t integer() {
    expect(":");
    return number_of<int64_t>(take());
  }
  double real() {
    expect(":");
    return number_of<double>(take());
  }
  int64_t mebibytes() { return std::min(integer(), INT64_MAX / kMiB) * kMiB; }
  bool boolean() {
    expect(":");
    const std::string& word = take();
    TD_CHECK_VALUE(word == "True" || word == "False",
                   "Expected 'True' or 'False' at index {} in ConfigTokenizer but got '{}'",
                   at_ - 1, word);
    return word == "True";
  }

  void parse_value() {
    AllocatorOptions& o = options_;
    if (key_ == "max_split_size_mb") {
      o.max_split_bytes = mebibytes();
      TD_CHECK_VALUE(o.max_split_bytes >= 20 * kMiB,
                     "CachingAllocator option max_split_size_mb too small, must be >= 20");
    } else if (key_ == "max_non_split_rounding_mb") {
      o.max_non_split_rounding = mebibytes();
      TD_CHECK_VALUE(o.max_non_split_rounding >= 20 * kMiB,
                     "CachingAllocator option max_non_split_rounding_mb too small, must be >= 20");
    } else if (key_ == "large_segment_size_mb") {
      o.large_segment_bytes = mebibytes();
      TD_CHECK_VALUE(o.large_segment_bytes > 10 * kMiB,
                     "CachingAllocator option large_segment_size_mb must be > 10 MB");
    } else if (key_ == "garbage_collection_threshold") {
      o.garbage_collection_threshold = real();
      TD_CHECK_VALUE(o.garbage_collection_threshold > 0 && o.garbage_collection_threshold < 1,
                     "garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
    } else if (key_ == "per_process_memory_fraction") {
      o.memory_fraction = real();
      TD_CHECK_VALUE(o.memory_fraction <= 1,
                     "per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
    } else if (key_ == "roundup_power2_divisions") {
      parse_divisions();
    } else if (key_ == "expandable_segments") {
      o.expandable_segments = boolean();
    } else if (key_ == "throw_on_cudamalloc_oom") {
      o.throw_before_device = boolean();
    } else {
      parse_pinned_or_ignored();
    }
  }

  void parse_pinned_or_ignored() {
    AllocatorOptions& o = options_;
    if (key_ == "pinned_use_cuda_host_register") {
      o.pinned_by_registering = boolean();
    } else if (key_ == "pinned_use_background_threads") {
      o.pinned_background_threads = boolean();
    } else if (key_ == "pinned_num_register_threads") {
      o.pinned_register_threads = integer();
      TD_CHECK_VALUE(std::has_single_bit(static_cast<uint64_t>(o.pinned_register_threads)) &&
                         o.pinned_register_threads <= 128,
                     "Number of register threads has to be power of 2 and at most 128, got {}",
                     o.pinned_register_threads);
    } else if (key_ == "pinned_reserve_segment_size_mb") {
      o.pinned_reserve_bytes = mebibytes();
    } else if (key_ == "pinned_max_round_threshold_mb") {
      o.pinned_max_round_bytes = mebibytes();
    } else if (key_ == "release_lock_on_cudamalloc" ||
               key_ == "graph_capture_record_stream_reuse") {
      boolean();  // the lock is held, and streams are reused after the capture, whatever it says
    } else if (key_ == "roundup_bypass_threshold_mb") {
      integer();  // an old name that PyTorch still reads, without effect
    } else if (key_ == "backend") {
      expect(":");
      const std::string& name = take();
      TD_CHECK_VALUE(name == "native" || name == "cudaMallocAsync",
                     "Unknown allocator backend, options are native and cudaMallocAsync");
      TD_CHECK_IMPLEMENTED(name == "native",
                           "allocator config: backend:cudaMallocAsync; taeda has the native one");
    } else {
      fail(ErrorKind::kValue, "Unrecognized key '{}' in Accelerator allocator config.", key_);
    }
  }

  static void check_divisions(int64_t divisions, const char* more) {
    TD_CHECK_VALUE(divisions == 0 || std::has_single_bit(static_cast<uint64_t>(divisions)),
                   "For roundups, the divisions has to be power of 2 {}", more);
  }
  // "4", or "[256:1,512:2,>:8]": from so many MiB on.
  void parse_divisions() {
    auto& divisions = options_.roundup_divisions;
    expect(":");
    if (!next_is("[")) {
      const auto all = number_of<int64_t>(take());
      check_divisions(all, "");
      return divisions.fill(all);
    }
    at_++;
    size_t last = 0;
    for (bool first = true; !next_is("]"); first = false) {
      if (!first) expect(",");
      const std::string& bound = take();
      const bool rest = bound == ">";
      const int64_t from = rest ? 1 : number_of<int64_t>(bound);
      TD_CHECK_VALUE(from > 0 && std::has_single_bit(static_cast<uint64_t>(from)),
                     "For roundups, the intervals have to be power of 2 ");
      expect(":");
      const auto value = number_of<int64_t>(take());
      check_divisions(value, "or 0 to disable roundup ");
      if (rest) {
        std::fill(divisions.begin() + static_cast<int64_t>(std::min(last + 1, divisions.size())),
                  divisions.end(), value);
        continue;
      }
      const size_t index =
          std::min<size_t>(static_cast<size_t>(std::bit_width(static_cast<uint64_t>(from)) - 1),
                           divisions.size() - 1);
      if (first) std::fill_n(divisions.begin(), index, value);
      divisions[index] = value;
      last = index;
    }
    expect("]");
  }

  std::vector<std::string> words_;
  size_t at_ = 0;
  std::string key_;
  AllocatorOptions options_;
};

}  // namespace

bool AllocatorOptions::rounds_up() const {
  return std::any_of(roundup_divisions.begin(), roundup_divisions.end(),
                     [](int64_t divisions) { return divisions > 1; });
}

int64_t AllocatorOptions::rounded(int64_t bytes, int64_t rounding) const {
  const auto size = static_cast<uint64_t>(bytes);
  const int doubling = std::bit_width(size) - 1;  // 2^doubling <= bytes
  const auto index = static_cast<size_t>(std::clamp(doubling - 20, 0, 15));
  const int64_t divisions = roundup_divisions[index];
  if (divisions <= 1 || bytes <= rounding * divisions)
    return (bytes + rounding - 1) / rounding * rounding;
  const int64_t step = (int64_t{1} << doubling) / divisions;
  return (bytes + step - 1) / step * step;
}

AllocatorOptions parse_allocator_options(std::string_view text) {
  AllocatorOptions options = Parser(text).parse();
  options.text = text;
  return options;
}

}  // namespace taeda
