// save and load: tensors and modules in files, in the safetensors format.
//
// Python reads and writes the same files with taeda.safetensors (load_file, save_file), and so do
// other frameworks. PyTorch's `.pt` files, which are Python pickles, can be read in Python only:
// taeda.safetensors.save_file(taeda.load("x.pt"), "x.safetensors") converts one.
//
// Saving replaces a file only when all is written and synced. Loading trusts nothing: sizes,
// dtypes and offsets are checked before memory is taken; RuntimeError for a file that lies.
//
//   const std::string path = testing::TempDir() + "header_example.safetensors";
//   const nn::Linear model(2, 3);
//   nn::Linear other(2, 3);
//   save(model, path);
//   load(other, path);
//   assert(equal(model.weight, other.weight));
//   assert(load_tensors(path).size() == 2);
#pragma once

#include <string>

#include "taeda/nn.h"
#include "taeda/tensor.h"

namespace taeda {

// Row-major copies of the tensors by name. ValueError for a name that is there twice; RuntimeError
// when the file cannot be written.
void save(const nn::NamedTensors& tensors, const std::string& path);
// A module's state_dict.
void save(const nn::Module& module, const std::string& path);
// One tensor, under the name "tensor".
void save(const Tensor& x, const std::string& path);

// All tensors of a file, in the order in which it has them, as copies in memory of their own.
nn::NamedTensors load_tensors(const std::string& path);
// Copies the file's values into the module; names and sizes as in Module::load_state_dict.
void load(nn::Module& module, const std::string& path, bool strict = true);
// The file's only tensor.
void load(Tensor& x, const std::string& path);

}  // namespace taeda
