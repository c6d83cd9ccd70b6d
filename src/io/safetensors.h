// The safetensors format: a header's length (8 bytes, little-endian), the header (JSON, padded with
// spaces to a multiple of 8 bytes) and the tensors' bytes, row-major, without gaps.
// https://github.com/huggingface/safetensors
//
// Nothing read is trusted: the time and memory that reading takes are proportional to the file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "taeda/nn.h"

namespace taeda::io {

using TextMap = std::map<std::string, std::string>;

// A file to be written: its header is ready, its data are the tensors'.
class SafetensorsWriter {
 public:
  using Sink = std::function<void(const void* data, size_t bytes)>;

  // Larger elements come first, so that all are aligned; then by name. ValueError for a name that
  // is there twice. `metadata` may be null.
  SafetensorsWriter(nn::NamedTensors tensors, const TextMap* metadata);
  int64_t nbytes() const { return nbytes_; }
  // Any byte but 0 is written as 1 where it stands for a bool.
  void write(const Sink& sink) const;

 private:
  void write_data(const Tensor& x, const Sink& sink) const;

  nn::NamedTensors tensors_;
  std::string header_;
  int64_t nbytes_;
};

// The bytes of a file, wherever they are.
class Source {
 public:
  virtual ~Source() = default;
  virtual int64_t nbytes() const = 0;
  // RuntimeError where there are not so many.
  virtual void read(int64_t offset, void* to, int64_t bytes) = 0;
};

struct Safetensors {
  nn::NamedTensors tensors;  // in the order of their data
  TextMap metadata;
};

// `with_tensors` false: only the metadata, everything checked all the same.
Safetensors read_safetensors(Source& source, bool with_tensors = true);
// FileError when the file cannot be opened.
Safetensors read_safetensors(const std::string& path, bool with_tensors = true);

}  // namespace taeda::io
