// The arguments of random numbers' kernels, which launchers fill.
#pragma once
#include "device/fault_code.h"
#include "kernels/cuda/text/walk_args.h"

namespace taeda::device {

// A generator's seed, and the offset that a kernel begins at. In a graph both come from memory that
// each replay sets: captured[0] is the seed, captured[1] what is added to the offset.
struct PhiloxState {
  const uint64_t* captured;  // null outside of graphs
  uint64_t seed, offset;
};

struct RandomArgs {
  Walk<1> walk;  // of what is filled
  char* out;
  PhiloxState philox;
  uint64_t threads;  // that the elements are dealt to; others do nothing
  double a, b;       // parameters
  uint64_t range;    // of integers; 0 stands for 2^64
  int64_t base;
  ElementType type;
};

// What is filled, and the probability of each element.
struct ChanceArgs {
  Walk<2> walk;
  char* out;
  const char* p;
  PhiloxState philox;
  BoundsMessage message;
  ElementType type, p_type;
  bool wide;  // probabilities are doubles
};

// Arrays of n elements: what is drawn, and one or two parameters of each.
struct CountArgs {
  char* out;
  const char* in[2];
  uint64_t n;
  PhiloxState philox;
  BoundsMessage message;
  ElementType type;
  uint32_t itemsize;
};

// Arrays of n elements. A draw's words are for elements beside each other, where the width is at
// least 2, else for elements `threads` apart.
struct DropoutArgs {
  char* out;
  char* mask;
  const char* in;
  uint64_t n;
  PhiloxState philox;
  uint64_t threads;
  double keep, scale;  // the probability, and what elements are multiplied by
  uint32_t width;      // elements that a thread has at a time: 1, 2, 4, 8
};

// Keys in ascending order, and what is sorted by them.
struct TiesArgs {
  const int64_t* keys;
  int64_t* order;
  uint64_t n;
  PhiloxState philox;
};

struct MultinomialArgs {
  const char* weights;     // (rows, n)
  char* keys;              // exponential numbers, then weights divided by them; or null
  char* shares;            // weights divided by their sum; or null
  const char* cumulative;  // sums of shares
  int64_t* out;            // (rows, samples)
  uint64_t rows, n, samples;
  uint64_t turns;    // rows / turns: draws of a thread
  uint64_t in_row;   // threads for the samples of a row
  uint32_t threads;  // of the group that has a row
  PhiloxState philox;
  BoundsMessage not_finite, no_mass;
  ElementType type;
  uint32_t itemsize;
};

}  // namespace taeda::device
