// The public functions of taeda/serialize.h.
#include "io/safetensors.h"

#include "io/file_writer.h"
#include "taeda/serialize.h"

namespace taeda {

void save(const nn::NamedTensors& tensors, const std::string& path) {
  const io::TextMap metadata = {{"format", "pt"}};
  const io::SafetensorsWriter content(tensors, &metadata);
  io::FileWriter file(path);
  content.write([&](const void* data, size_t bytes) { file.write(data, bytes); });
  file.commit();
}

void save(const nn::Module& module, const std::string& path) { save(module.state_dict(), path); }
void save(const Tensor& x, const std::string& path) { save(nn::NamedTensors{{"tensor", x}}, path); }

nn::NamedTensors load_tensors(const std::string& path) {
  return io::read_safetensors(path).tensors;
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
