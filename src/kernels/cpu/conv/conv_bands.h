// Convolutions of images so large that a single one takes long, cut into bands of rows: several
// threads work at one image, and the program's signals are seen between two bands.
#pragma once

#include <vector>

#include "kernels/cpu/conv/conv_array.h"

namespace taeda::cpu {

// Convolutions that compute parts of p.y, or of p.x, the gradient, from what those parts touch of
// the other; p alone where it is not worth cutting. How it is cut depends on the sizes alone. The
// cut dimension is the outermost: the positions of a part lie in memory as evenly as those of p.
std::vector<ConvProblem> bands_of_y(const ConvProblem& p);
std::vector<ConvProblem> bands_of_x(const ConvProblem& p);

}  // namespace taeda::cpu
