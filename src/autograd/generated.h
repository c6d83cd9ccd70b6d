// What every generated operator file uses, besides the operators it calls (op/NAME.h). Precompiled;
// not for hand-written code.
#pragma once

#include <limits>
#include <tuple>

#include "autograd/layout_inplace.h"
#include "autograd/record.h"
#include "kernels/view.h"
#include "ops/allocate.h"
#include "ops/autocast.h"
#include "ops/contract.h"
#include "ops/dispatch.h"
#include "ops/expr.h"
#include "ops/fallback.h"
#include "ops/image_rules.h"
#include "ops/index_rules.h"
#include "ops/lapack_rules.h"
#include "ops/linalg_rules.h"
#include "ops/loss_rules.h"
#include "ops/modes.h"
#include "ops/pointwise.h"
#include "ops/pool_rules.h"
#include "ops/reduce_rules.h"
#include "ops/rules.h"
#include "ops/view_rules.h"

namespace taeda {
using namespace std::string_view_literals;
}
