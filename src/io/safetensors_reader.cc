#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "io/file_writer.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/safetensors_types.h"
#include "op/empty.h"

namespace taeda::io {
namespace {

constexpr size_t kMaxDims = 64;

class FileSource : public Source {
 public:
  explicit FileSource(const std::string& path)
      : path_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status;
    if (!file_ || fstat(file_.get(), &status) != 0)
      throw FileError("load: cannot open", path, errno);
    if (S_ISDIR(status.st_mode)) throw FileError("load: cannot open", path, EISDIR);
    TD_CHECK(S_ISREG(status.st_mode), "safetensors: {} is not a regular file", path);
    nbytes_ = status.st_size;
  }
  int64_t nbytes() const override { return nbytes_; }
  void read(int64_t offset, void* to, int64_t bytes) override {
    while (bytes > 0) {
      const ssize_t count = pread(file_.get(), to, static_cast<size_t>(bytes), offset);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw FileError("load: cannot read", path_, errno);
      TD_CHECK(count > 0, "safetensors: {} is truncated", path_);
      to = static_cast<char*>(to) + count;
      offset += count;
      bytes -= count;
    }
  }

 private:
  std::string path_;
  Descriptor file_;
  int64_t nbytes_;
};

struct Entry {
  std::string name;
  DType dtype = DType::kBool;
  DimVector sizes;
  int64_t begin = 0, end = 0;

  // Names are of any length; messages are not.
  std::string_view shown() const { return std::string_view(name).substr(0, 80); }
};

void read_sizes(JsonReader& json, Entry& entry) {
  for (bool first = true; json.element(first);) {
    TD_CHECK(entry.sizes.size() < kMaxDims, "safetensors: {} has more than {} dimensions",
             entry.shown(), kMaxDims);
    entry.sizes.push_back(json.whole_number());
  }
}

void read_offsets(JsonReader& json, Entry& entry) {
  int64_t* const offsets[] = {&entry.begin, &entry.end};
  size_t count = 0;
  for (bool first = true; json.element(first); count++) {
    TD_CHECK(count < 2, "safetensors: {} has more than two offsets", entry.shown());
    *offsets[count] = json.whole_number();
  }
  TD_CHECK(count == 2, "safetensors: {} has {} offsets instead of two", entry.shown(), count);
}

Entry read_entry(JsonReader& json, std::string name) {
  Entry entry;
  entry.name = std::move(name);
  std::string key;
  bool seen[3] = {false, false, false};
  const auto once = [&](int i) {
    TD_CHECK(!seen[i], "safetensors: {} has the property {} twice", entry.shown(), key);
    seen[i] = true;
  };
  for (bool first = true; json.member(first, key);) {
    if (key == "dtype") {
      once(0);
      entry.dtype = safetensors_dtype(json.string());
    } else if (key == "shape") {
      once(1);
      read_sizes(json, entry);
    } else if (key == "data_offsets") {
      once(2);
      read_offsets(json, entry);
    } else {
      fail(ErrorKind::kRuntime, "safetensors: {} has an unknown property {}", entry.shown(),
           std::string_view(key).substr(0, 40));
    }
  }
  TD_CHECK(seen[0] && seen[1] && seen[2],
           "safetensors: {} is not described by dtype, shape and data_offsets", entry.shown());
  return entry;
}

TextMap read_metadata(JsonReader& json) {
  TextMap metadata;
  std::string key;
  for (bool first = true; json.member(first, key);)
    TD_CHECK(metadata.emplace(key, json.string()).second,
             "safetensors: __metadata__ names {} twice", std::string_view(key).substr(0, 80));
  return metadata;
}

// The sizes' product in bytes; -1 if it overflows.
int64_t bytes_of(const Entry& entry) {
  int64_t bytes = item_size(entry.dtype);
  for (const int64_t size : entry.sizes)
    if (__builtin_mul_overflow(bytes, size, &bytes)) return -1;
  return bytes;
}

void check_names(const std::vector<Entry>& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  TD_CHECK(twice == names.end(), "safetensors: the name {} is there twice", twice->substr(0, 80));
}

// Sorts the entries by their data, which must fill the `bytes` behind the header without gaps.
void check_layout(std::vector<Entry>& entries, int64_t bytes) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  int64_t at = 0;
  for (const Entry& entry : entries) {
    TD_CHECK(entry.begin == at && entry.end >= at && entry.end <= bytes,
             "safetensors: the data of {} overlap others or leave a gap", entry.shown());
    TD_CHECK(bytes_of(entry) == entry.end - entry.begin,
             "safetensors: {} has {} bytes, which its shape and dtype do not need", entry.shown(),
             entry.end - entry.begin);
    at = entry.end;
  }
  TD_CHECK(at == bytes, "safetensors: {} bytes at the end belong to no tensor", bytes - at);
}

std::string read_header_text(Source& source) {
  uint64_t length = 0;
  TD_CHECK(source.nbytes() >= static_cast<int64_t>(sizeof(length)),
           "safetensors: the file is too small for a header");
  source.read(0, &length, sizeof(length));
  TD_CHECK(
      length <= kMaxHeaderBytes && static_cast<int64_t>(sizeof(length) + length) <= source.nbytes(),
      "safetensors: the header says it has {} bytes, which is more than there can be", length);
  std::string text(length, '\0');
  source.read(sizeof(length), text.data(), static_cast<int64_t>(length));
  return text;
}

Tensor read_tensor(Source& source, const Entry& entry, int64_t data_begin) {
  Tensor x = op::empty(entry.sizes, entry.dtype, {});
  source.read(data_begin + entry.begin, x.data_ptr(), x.nbytes());
  if (entry.dtype == DType::kBool) {
    const auto* data = static_cast<const unsigned char*>(x.data_ptr());
    TD_CHECK(std::all_of(data, data + x.numel(), [](unsigned char c) { return c <= 1; }),
             "safetensors: {} is bool, but holds something else than 0 and 1", entry.shown());
  }
  return x;
}

}  // namespace

Safetensors read_safetensors(Source& source, bool with_tensors) {
  const std::string text = read_header_text(source);
  Safetensors result;
  std::vector<Entry> entries;
  JsonReader json(text);
  std::string name;
  bool metadata_seen = false;
  for (bool first = true; json.member(first, name);) {
    if (name == "__metadata__") {
      TD_CHECK(!metadata_seen, "safetensors: __metadata__ is there twice");
      metadata_seen = true;
      result.metadata = read_metadata(json);
    } else {
      entries.push_back(read_entry(json, std::move(name)));
    }
  }
  json.end();
  check_names(entries);
  const int64_t data_begin = static_cast<int64_t>(sizeof(uint64_t) + text.size());
  check_layout(entries, source.nbytes() - data_begin);
  if (!with_tensors) return result;
  result.tensors.reserve(entries.size());
  for (Entry& entry : entries) {
    Tensor x = read_tensor(source, entry, data_begin);
    result.tensors.emplace_back(std::move(entry.name), std::move(x));
  }
  return result;
}

Safetensors read_safetensors(const std::string& path, bool with_tensors) {
  FileSource source(path);
  return read_safetensors(source, with_tensors);
}

}  // namespace taeda::io
