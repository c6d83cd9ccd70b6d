// What generated files include that make results with strides of their own.
#pragma once

#include "ops/elementwise.h"
#include "ops/fft_rules.h"
#include "ops/matrices.h"
