// The IDX format (yann.lecun.com/exdb/mnist): two zero bytes, element type, number of dimensions,
// sizes as big-endian 32-bit integers, then the elements, big-endian and row-major.
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>

#include "core/layout.h"
#include "op/div.h"
#include "op/empty.h"
#include "op/to_dtype.h"
#include "op/unsqueeze.h"
#include "taeda/data.h"

namespace taeda::data {
namespace {

// A plain or gzipped file; zlib tells which.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    TD_CHECK(file_ != nullptr, "read_idx: cannot open '{}'", path);
  }
  ~Reader() { gzclose(file_); }
  Reader(const Reader&) = delete;

  void read(void* to, int64_t bytes) {
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      const int got = gzread(file_, at, static_cast<unsigned>(std::min<int64_t>(bytes, 1 << 30)));
      TD_CHECK(got > 0, "read_idx: '{}' is damaged or ends {} bytes early", path_, bytes);
      at += got;
      bytes -= got;
    }
  }
  bool at_end() {
    char byte;
    return gzread(file_, &byte, 1) == 0;
  }

 private:
  std::string path_;
  gzFile file_;
};

DType dtype_of(uint8_t code, const std::string& path) {
  switch (code) {
    case 0x08:
      return DType::kUInt8;
    case 0x09:
      return DType::kInt8;
    case 0x0b:
      return DType::kInt16;
    case 0x0c:
      return DType::kInt32;
    case 0x0d:
      return DType::kFloat32;
    case 0x0e:
      return DType::kFloat64;
    default:
      fail(ErrorKind::kRuntime, "read_idx: '{}' has the unknown element type {}", path, code);
  }
}

std::string existing(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? path : path + ".gz";
}

}  // namespace

Tensor read_idx(const std::string& path) {
  Reader reader(path);
  uint8_t head[4];
  reader.read(head, 4);
  TD_CHECK(head[0] == 0 && head[1] == 0, "read_idx: '{}' is not an IDX file", path);
  const DType dtype = dtype_of(head[2], path);
  DimVector sizes;
  for (int d = 0; d < head[3]; d++) {
    uint8_t b[4];
    reader.read(b, 4);
    sizes.push_back(int64_t{b[0]} << 24 | int64_t{b[1]} << 16 | int64_t{b[2]} << 8 | int64_t{b[3]});
  }
  // A lying header must not make us reserve what the file cannot hold: deflate shrinks at most
  // about 1000 to 1.
  struct stat info;
  TD_CHECK(stat(path.c_str(), &info) == 0, "read_idx: cannot examine '{}'", path);
  const int64_t bytes = checked_nbytes(sizes, dtype);
  TD_CHECK(bytes / 1100 <= info.st_size,
           "read_idx: '{}' claims {} bytes of data, which it cannot hold", path, bytes);
  Tensor out = op::empty(sizes, dtype, {});
  reader.read(out.data_ptr(), bytes);
  TD_CHECK(reader.at_end(), "read_idx: '{}' goes on beyond its {} bytes of data", path, bytes);
  const int64_t size = item_size(dtype);
  auto* data = static_cast<char*>(out.data_ptr());
  for (int64_t i = 0; size > 1 && i < out.numel(); i++)
    std::reverse(data + i * size, data + (i + 1) * size);
  return out;
}

TensorDataset mnist(const std::string& folder, bool train) {
  const std::string prefix = folder + (train ? "/train" : "/t10k");
  const Tensor images = read_idx(existing(prefix + "-images-idx3-ubyte"));
  const Tensor labels = read_idx(existing(prefix + "-labels-idx1-ubyte"));
  TD_CHECK(images.dim() == 3 && labels.dim() == 1,
           "mnist: expected images (n, h, w) and labels (n), got {} and {}", images.sizes(),
           labels.sizes());
  const Tensor scaled = op::div(op::to_dtype(images, DType::kFloat32, false, std::nullopt), 255.0);
  return {op::unsqueeze(scaled, 1), op::to_dtype(labels, DType::kInt64, false, std::nullopt)};
}

}  // namespace taeda::data
