#include <algorithm>
#include <memory>

#include "core/host_copy.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/safetensors_types.h"
#include "op/contiguous.h"
#include "op/detach.h"

namespace taeda::io {
namespace {

constexpr size_t kChunkBytes = size_t{256} << 10;

void append_metadata(std::string& header, const TextMap& metadata) {
  header += "\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    if (header.back() != '{') header += ",";
    header += json_string(key) + ":" + json_string(value);
  }
  header += "}";
}

void append_entry(std::string& header, const std::string& name, const Tensor& x, int64_t at) {
  std::string sizes;
  for (const int64_t size : x.sizes()) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
  if (header.size() > 1) header += ",";
  header += json_string(name) + ":{\"dtype\":\"" + std::string(safetensors_name(x.dtype())) +
            "\",\"shape\":[" + sizes + "],\"data_offsets\":[" + std::to_string(at) + "," +
            std::to_string(at + x.nbytes()) + "]}";
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(nn::NamedTensors tensors, const TextMap* metadata)
    : tensors_(std::move(tensors)) {
  for (const auto& [name, x] : tensors_)
    TD_CHECK_VALUE(x.defined() && x.device().is_cpu(), "save: {} has no values on the cpu", name);
  std::stable_sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) {
    const int64_t first = item_size(a.second.dtype()), second = item_size(b.second.dtype());
    return first != second ? first > second : a.first < b.first;
  });
  header_ = "{";
  if (metadata) append_metadata(header_, *metadata);
  int64_t at = 0;
  std::vector<std::string_view> names;
  for (const auto& [name, x] : tensors_) {
    TD_CHECK_VALUE(name != "__metadata__", "save: no tensor can be named {}", name);
    names.push_back(name);
    append_entry(header_, name, x, at);
    at += x.nbytes();
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  TD_CHECK_VALUE(twice == names.end(), "save: the name {} is there twice", *twice);
  header_ += "}";
  header_.resize((header_.size() + 7) / 8 * 8, ' ');
  TD_CHECK_VALUE(header_.size() <= kMaxHeaderBytes,
                 "save: the header would have {} bytes; files may have {}", header_.size(),
                 kMaxHeaderBytes);
  nbytes_ = static_cast<int64_t>(sizeof(uint64_t) + header_.size()) + at;
}

void SafetensorsWriter::write(const Sink& sink) const {
  const uint64_t length = header_.size();
  sink(&length, sizeof(length));
  sink(header_.data(), header_.size());
  for (const auto& [name, x] : tensors_)
    write_data(op::contiguous(host_copy(op::detach(x)), MemoryFormat::kContiguous), sink);
}

void SafetensorsWriter::write_data(const Tensor& x, const Sink& sink) const {
  const auto* data = static_cast<const unsigned char*>(x.data_ptr());
  const size_t bytes = static_cast<size_t>(x.nbytes());
  if (x.dtype() != DType::kBool) return sink(data, bytes);
  const auto chunk = std::make_unique<unsigned char[]>(std::min(bytes, kChunkBytes));
  for (size_t at = 0; at < bytes; at += kChunkBytes) {
    const size_t count = std::min(bytes - at, kChunkBytes);
    std::transform(data + at, data + at + count, chunk.get(),
                   [](unsigned char byte) { return byte != 0 ? 1 : 0; });
    sink(chunk.get(), count);
  }
}

}  // namespace taeda::io
