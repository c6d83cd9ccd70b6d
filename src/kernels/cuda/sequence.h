// Sequences by a device's kernels (text/sequence.cuh).
#pragma once

#include "kernels/sequences.h"
#include "kernels/view.h"

namespace taeda::cuda {

// out[i] = at(i), for a vector in row-major order of a type that `at` gives, or is converted to.
void fill_sequence(const View& out, const sequences::Count& at);
void fill_sequence(const View& out, const sequences::Steps& at);
void fill_sequence(const View& out, const sequences::Spaced& at);
void fill_sequence(const View& out, const sequences::Powers& at);
void fill_sequence(const View& out, const sequences::ComplexSpaced& at);
void fill_sequence(const View& out, const sequences::Windowed& at);
// [2, n]: rows and columns of the triangle's elements.
void fill_triangle(const View& out, const sequences::Triangle& triangle);

}  // namespace taeda::cuda
