// All of taeda's C++ interface: tensors and operators, gradients, layers, optimizers, data.
#pragma once

#include "taeda/autograd.h"
#include "taeda/data.h"
#include "taeda/generator.h"
#include "taeda/indexing.h"
#include "taeda/nn.h"
#include "taeda/operator.h"
#include "taeda/ops.h"
#include "taeda/optim.h"
#include "taeda/profile.h"
#include "taeda/serialize.h"
#include "taeda/tensor.h"
#include "taeda/values.h"
#include "taeda/warning.h"
