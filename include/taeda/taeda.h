// All of taeda's C++ interface: tensors and operators, gradients, layers, optimizers, data.
//
//   const Tensor x = randn({64, 10}), y = x.sum(DimVector{1}, true);
//   const nn::Sequential model{nn::Linear(10, 32), nn::ReLU(), nn::Linear(32, 1)};
//   optim::Adam adam(model.parameters(), {.lr = 1e-2});
//   for (int step = 0; step < 300; step++) {
//     adam.zero_grad();
//     mse_loss(model(x), y).backward();
//     adam.step();
//   }
//   const NoGrad guard;
//   assert(mse_loss(model(x), y).item<float>() < 0.5);
//
// Names, arguments, defaults and results are those of PyTorch in Python; a torch.nn.Linear is an
// nn::Linear here, torch.matmul(a, b) is matmul(a, b) and x.sum(1) is x.sum(1). What PyTorch raises
// as an exception of Python is a taeda::Error of the same kind (error.h). Including this header
// costs a compiler some seconds; a file that needs tensors alone includes taeda/tensor.h.
//
// | header | what is in it |
// |---|---|
// | tensor.h, ops.h, values.h, indexing.h | tensors, operators, literals, x[...] |
// | autograd.h | gradients, modes that switch recording, hooks, functions with their own gradient |
// | nn.h, optim.h, data.h, serialize.h | layers, optimizers, data sets, files |
// | dtype.h, device.h, scalar.h, generator.h | element types, devices, numbers, random numbers |
// | foreach.h | operators on each tensor of a list: _foreach_add |
// | operator.h, profile.h | operators by name, registering new ones, what ran and how long |
// | trace.h | the operators that a function called, as a program |
// | error.h, warning.h | exceptions and warnings |
#pragma once

#include "taeda/autograd.h"
#include "taeda/data.h"
#include "taeda/foreach.h"
#include "taeda/generator.h"
#include "taeda/indexing.h"
#include "taeda/nn.h"
#include "taeda/operator.h"
#include "taeda/ops.h"
#include "taeda/optim.h"
#include "taeda/profile.h"
#include "taeda/serialize.h"
#include "taeda/tensor.h"
#include "taeda/trace.h"
#include "taeda/values.h"
#include "taeda/warning.h"
