// Calls of kernels whose threads work together: what they give is checked, and that the thread
// sanitizer sees nothing in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace taeda::races {

float sum(const std::vector<float>& x);  // by blocks, in two launches
// Of one row: "softmax_f32_any", "cumsum_f32_any".
std::vector<float> along(const char* kernel, const std::vector<float>& x);
float cross_entropy(const std::vector<float>& x);
// The last of the tangents of running products of ones, where all elements move by 1.
float cumprod_tangent(size_t n);
// n ones added to two elements in turn: what the first then is.
float pool_scatter(int64_t n);
// The numbers of the flags that are true, by two blocks in three launches.
std::vector<int64_t> where(const std::vector<uint8_t>& flags);
// Of a row of keys in their order, which are the elements, too.
int64_t mode(std::vector<uint64_t> keys);
// With equal keys, the heaviest.
int64_t category(const std::vector<float>& weights);

// Kernels that lack what would order their threads (planted.cc), by name, or have it; false for
// another name.
bool run_planted(const std::string& name, bool ordered);

}  // namespace taeda::races
