#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>

#include "io/json.h"
#include "taeda/ops.h"
#include "taeda/serialize.h"

// A file is the header's length (8 bytes, little-endian), the header (JSON, padded with spaces to a
// multiple of 8 bytes) and the tensors' bytes one after the other, row-major.

namespace taeda {
namespace {

using io::JsonReader;

struct TypeName {
  DType dtype;
  std::string_view name;
};
constexpr std::array<TypeName, kNumDTypes> kTypeNames = {{{DType::kBool, "BOOL"},
                                                          {DType::kUInt8, "U8"},
                                                          {DType::kInt8, "I8"},
                                                          {DType::kInt16, "I16"},
                                                          {DType::kInt32, "I32"},
                                                          {DType::kInt64, "I64"},
                                                          {DType::kFloat16, "F16"},
                                                          {DType::kBFloat16, "BF16"},
                                                          {DType::kFloat32, "F32"},
                                                          {DType::kFloat64, "F64"},
                                                          {DType::kComplex64, "C64"},
                                                          {DType::kComplex128, "C128"}}};

std::string_view name_of(DType dtype) {
  return std::find_if(kTypeNames.begin(), kTypeNames.end(),
                      [&](const TypeName& t) { return t.dtype == dtype; })
      ->name;
}

[[noreturn]] void fail_file(const char* what, const std::string& path) {
  fail(ErrorKind::kRuntime, "{} {}: {}", what, path, std::strerror(errno));
}

// --- writing ---

std::string header_of(const nn::NamedTensors& tensors) {
  std::string header = "{\"__metadata__\":{\"format\":\"pt\"}";
  std::set<std::string_view> names;
  int64_t at = 0;
  for (const auto& [name, x] : tensors) {
    TD_CHECK_VALUE(names.insert(name).second, "save: the name {} is there twice", name);
    TD_CHECK(x.defined() && x.device().is_cpu(), "save: {} has no values", name);
    std::string sizes;
    for (const int64_t size : x.sizes()) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    header += "," + io::json_string(name) + ":{\"dtype\":\"" + std::string(name_of(x.dtype())) +
              "\",\"shape\":[" + sizes + "],\"data_offsets\":[" + std::to_string(at) + "," +
              std::to_string(at + x.nbytes()) + "]}";
    at += x.nbytes();
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return header;
}

// A new file that takes the place of another when it is complete; dropped otherwise.
class NewFile {
 public:
  explicit NewFile(const std::string& path)
      : path_(path), temporary_(path + "." + std::to_string(getpid()) + ".tmp") {
    handle_ = open(temporary_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (handle_ < 0) fail_file("save: cannot open", temporary_);
  }
  ~NewFile() {
    if (handle_ >= 0) close(handle_);
    if (!done_) unlink(temporary_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(const void* data, size_t bytes) {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t written = ::write(handle_, at, bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail_file("save: cannot write", path_);
      at += written;
      bytes -= static_cast<size_t>(written);
    }
  }
  void finish() {
    if (fsync(handle_) != 0 || std::rename(temporary_.c_str(), path_.c_str()) != 0)
      fail_file("save: cannot write", path_);
    done_ = true;
  }

 private:
  std::string path_, temporary_;
  int handle_;
  bool done_ = false;
};

// --- reading ---

struct Entry {
  std::string name;
  DType dtype = DType::kBool;
  DimVector sizes;
  int64_t begin = -1, end = -1;
};

DType dtype_of(const std::string& name) {
  for (const TypeName& type : kTypeNames)
    if (type.name == name) return type.dtype;
  fail(ErrorKind::kRuntime, "load: unknown dtype {}", name);
}

Entry read_entry(JsonReader& json, std::string name) {
  Entry entry;
  entry.name = std::move(name);
  std::string key;
  bool dtype_seen = false, sizes_seen = false;
  for (bool first = true; json.member(first, key);) {
    if (key == "dtype") {
      entry.dtype = dtype_of(json.string());
      dtype_seen = true;
    } else if (key == "shape") {
      for (bool inner = true; json.element(inner);) entry.sizes.push_back(json.whole_number());
      TD_CHECK(entry.sizes.size() <= 64, "load: {} has too many dimensions", entry.name);
      sizes_seen = true;
    } else if (key == "data_offsets") {
      int64_t* const offsets[] = {&entry.begin, &entry.end};
      size_t count = 0;
      for (bool inner = true; json.element(inner); count++) {
        TD_CHECK(count < 2, "load: {} has more than two offsets", entry.name);
        *offsets[count] = json.whole_number();
      }
    } else {
      fail(ErrorKind::kRuntime, "load: {} has the unknown property {}", entry.name, key);
    }
  }
  TD_CHECK(dtype_seen && sizes_seen && entry.end >= 0, "load: {} is not fully described",
           entry.name);
  return entry;
}

// The sizes' product in bytes, which must not overflow; -1 if it does.
int64_t bytes_of(const Entry& entry) {
  int64_t bytes = item_size(entry.dtype);
  for (const int64_t size : entry.sizes)
    if (__builtin_mul_overflow(bytes, size, &bytes)) return -1;
  return bytes;
}

std::vector<Entry> read_header(const std::string& text, int64_t data_bytes) {
  JsonReader json(text);
  std::vector<Entry> entries;
  std::set<std::string> names;
  std::string name, key;
  for (bool first = true; json.member(first, name);) {
    TD_CHECK(names.insert(name).second, "load: the name {} is there twice", name);
    if (name == "__metadata__") {
      for (bool inner = true; json.member(inner, key);) json.string();
      continue;
    }
    entries.push_back(read_entry(json, name));
  }
  json.end();
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  int64_t at = 0;
  for (const Entry& entry : entries) {
    TD_CHECK(entry.begin == at && entry.end >= at && entry.end <= data_bytes &&
                 bytes_of(entry) == entry.end - entry.begin,
             "load: {} does not lie where the file says", entry.name);
    at = entry.end;
  }
  TD_CHECK(at == data_bytes, "load: {} bytes at the end belong to no tensor", data_bytes - at);
  return entries;
}

void read(std::ifstream& file, const std::string& path, void* data, int64_t bytes) {
  if (bytes > 0 && !file.read(static_cast<char*>(data), bytes))
    fail(ErrorKind::kRuntime, "load: {} is truncated", path);
}

void check_bools(const Tensor& x, const std::string& name) {
  if (x.dtype() != DType::kBool) return;
  const auto* data = static_cast<const unsigned char*>(x.data_ptr());
  TD_CHECK(std::all_of(data, data + x.numel(), [](unsigned char c) { return c <= 1; }),
           "load: {} holds something else than 0 and 1", name);
}

}  // namespace

void save(const nn::NamedTensors& tensors, const std::string& path) {
  const std::string header = header_of(tensors);
  const uint64_t length = header.size();
  NewFile file(path);
  file.write(&length, sizeof(length));
  file.write(header.data(), header.size());
  for (const auto& [name, x] : tensors) {
    const Tensor dense = x.detach().contiguous();
    file.write(dense.data_ptr(), static_cast<size_t>(dense.nbytes()));
  }
  file.finish();
}

void save(const nn::Module& module, const std::string& path) { save(module.state_dict(), path); }
void save(const Tensor& x, const std::string& path) { save(nn::NamedTensors{{"tensor", x}}, path); }

nn::NamedTensors load_tensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) fail_file("load: cannot open", path);
  const int64_t size = static_cast<int64_t>(file.tellg());
  file.seekg(0);
  uint64_t length = 0;
  read(file, path, &length, sizeof(length));
  TD_CHECK(length <= static_cast<uint64_t>(size) - sizeof(length), "load: {} is truncated", path);
  std::string header(length, '\0');
  read(file, path, header.data(), static_cast<int64_t>(length));
  const int64_t data_bytes = size - static_cast<int64_t>(sizeof(length) + length);
  nn::NamedTensors result;
  for (const Entry& entry : read_header(header, data_bytes)) {
    Tensor x = empty(entry.sizes, TensorOptions(entry.dtype));
    read(file, path, x.data_ptr(), x.nbytes());
    check_bools(x, entry.name);
    result.emplace_back(entry.name, std::move(x));
  }
  return result;
}

void load(nn::Module& module, const std::string& path, bool strict) {
  module.load_state_dict(load_tensors(path), strict);
}

void load(Tensor& x, const std::string& path) {
  nn::NamedTensors all = load_tensors(path);
  TD_CHECK(all.size() == 1, "load: expected one tensor in {}, found {}", path,
           static_cast<int64_t>(all.size()));
  x = std::move(all[0].second);
}

}  // namespace taeda
