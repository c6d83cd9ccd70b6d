// Everything that a generated operator file uses. Precompiled; not for hand-written code.
#pragma once

#include <limits>
#include <tuple>

#include "autograd/layout_inplace.h"
#include "autograd/record.h"
#include "kernels_decl.h"
#include "op_handlers.h"
#include "op_impl.h"
#include "op_rules.h"
#include "ops/allocate.h"
#include "ops/autocast.h"
#include "ops/contract.h"
#include "ops/dispatch.h"
#include "ops/expr.h"
#include "ops/pointwise.h"
#include "taeda/ops.h"
