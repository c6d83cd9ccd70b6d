// vmap's levels, and the tensors that hide a batch dimension from the function that vmap calls.
//
// A batched tensor stands for another, its *value*, whose dimension 0 is the batch: its sizes,
// strides and offset are those of one sample, it has no memory of its own (data() raises), and
// operators on it reach the handler in handler.cc. A value may itself be batched, at a lower level.
// Views of a batched tensor share its (empty) storage, so that versions and questions about shared
// memory work as for others.
//
// Levels belong to a thread and nest. While one is at work, kBatched is included, so that random
// operators are seen without a batched argument, and kAutograd is excluded: history outside of vmap
// is that of the values, and only a transform inside (func.grad) records on batched tensors.
#pragma once

#include "taeda/tensor.h"

namespace taeda::batching {

// What random operators draw: nothing (an error), other numbers for each sample, the same for all.
enum class Randomness : uint8_t { kError, kDifferent, kSame };

struct Level final : RefCounted {
  int64_t size;         // of the batch
  int64_t depth;        // 1: the outermost one
  Ref<Level> outer;     // null for that
  ThreadModes outside;  // of the thread when it entered
  Randomness randomness;
  bool ended = false;
  uint64_t tangents = 0;  // which levels of forward mode were seen then
};

// Forward mode's state of the thread, which autograd, a layer above, puts in: what is computed
// outside of a level sees the tangents that were seen there.
struct TangentLimit {
  uint64_t (*get)();
  void (*set)(uint64_t limit);
};
void set_tangent_limit(TangentLimit limit);

// The innermost level of the calling thread; null outside of vmap.
Level* current();
// Starts a level of the calling thread and ends it: strictly nested.
Level& enter(int64_t size, Randomness randomness);
void leave();

struct Wrapped final : RefCounted {
  Tensor value;
  Ref<Level> level;
};

inline bool is_batched(const Tensor& t) { return t.defined() && t.impl()->keys.has(Key::kBatched); }
// Whether the vmap that a batched tensor belongs to has ended: it can no longer be used.
bool has_ended(const Tensor& t);
// Of a batched tensor. RuntimeError where its vmap has ended.
Level& level_of(const Tensor& t);
const Tensor& value_of(const Tensor& t);
// The value where `t` is batched at this level; undefined otherwise.
Tensor value_at(const Tensor& t, const Level& level);

// A plain tensor, repeated without a copy, and the batch in front.
Tensor expand_batch(const Tensor& plain, int64_t size);

// The tensor that hides dimension 0 of `value`.
Tensor wrap(const Tensor& value, Level& level);
// Gives a plain tensor a batch of its own, each sample with a copy of what it holds, where nobody
// can tell: only C++ code that is running knows the tensor, and no other looks into its memory
// (what a composite or a formula made to write into). False where that is not so.
bool take_on_batch(const Tensor& t, Level& level);
// `t`, or of a batched tensor what lies below all levels: for checks of all elements.
Tensor all_samples(const Tensor& t);
// Takes sizes, strides and offset from the value again, after it was written in place.
void refresh_layout(const Tensor& batched);
// Another batched tensor of the same value, storage and level.
Tensor alias(const Tensor& batched);

// Runs operators as the code outside of a level does, until the end of the scope: on values.
class Outside {
 public:
  explicit Outside(const Level& level);
  ~Outside();
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  const ThreadModes modes_;
  const uint64_t tangents_;
  Level* const current_;
};

}  // namespace taeda::batching
