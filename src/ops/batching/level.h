// vmap's levels, and the tensors that hide a batch dimension from the function that vmap calls.
//
// A batched tensor stands for another, its *value*, whose dimension 0 is the batch: its sizes,
// strides and offset are those of one sample, it has no memory of its own (data() raises), and
// operators on it reach the handler in handler.cc. A value may itself be batched, at a lower level.
//
// The history and the tangents of a batched tensor are those of transforms between its level and
// the next one inside; an operator without an argument of the innermost level runs outside of it.
//
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

// Which levels of forward mode a thread sees: those under `limit`, but none that is over `hidden`
// and not over `newest`.
struct TangentLevels {
  uint64_t limit, hidden = 0, newest = 0;
};

struct Level final : RefCounted {
  int64_t size;         // of the batch
  int64_t depth;        // 1: the outermost one
  Ref<Level> outer;     // null for that
  ThreadModes outside;  // of the thread when it entered
  Randomness randomness;
  bool ended = false;
  bool records = false;         // a transform inside is at work: kAutograd is not excluded
  TangentLevels tangents = {};  // seen when it was entered
  uint64_t forward_floor = 0;   // those up to this one are of the code outside
};

// What autograd, a layer above, puts in.
struct Differentiation {
  // Forward mode's state of the thread: what is computed outside of a level of vmap sees the
  // tangents that were seen there.
  TangentLevels (*tangents)();
  void (*set_tangents)(TangentLevels levels);
  uint64_t (*newest_forward_level)();
  // Makes `result` a view whose writes reach the history and tangents of `base`.
  void (*track_view)(const Tensor& result, const Tensor& base, bool one_of_several);
};
void set_differentiation(const Differentiation& functions);
const Differentiation& differentiation();
// What is seen outside of a level that was entered when `entered` were seen and `floor` was the
// newest one: none that code inside has entered since, whose tangents are for that code.
TangentLevels tangents_outside(TangentLevels entered, uint64_t floor);

// The innermost level of the calling thread; null outside of vmap.
Level* current();
// The same; null too where functionalize, inside of it, is at work, whose tensors are no batches.
Level* active();
// Makes a level of the calling thread the innermost one for a while, and gives back which it was.
Level* exchange_current(Level* level);
// Starts a level of the calling thread and ends it: strictly nested.
Level& enter(int64_t size, Randomness randomness);
void leave();

struct Wrapped final : RefCounted {
  Tensor value;   // the batch in front; undefined where there is
  Tensor shared;  // the one tensor that all samples are
  Ref<Level> level;
};

inline bool is_batched(const Tensor& t) { return t.defined() && t.impl()->keys.has(Key::kBatched); }
// Whether the vmap that a batched tensor belongs to has ended: it can no longer be used.
bool has_ended(const Tensor& t);
// Of a batched tensor. RuntimeError where its vmap has ended.
Level& level_of(const Tensor& t);
// What it is made of: its value, or the tensor that all samples share.
const Tensor& content_of(const Tensor& t);
bool is_at(const Tensor& t, const Level& level);
// The value where `t` is batched at this level; undefined otherwise.
Tensor value_at(const Tensor& t, const Level& level);

// A plain tensor, repeated without a copy, and the batch in front.
Tensor expand_batch(const Tensor& plain, int64_t size);

// The tensor that hides dimension 0 of `value`.
Tensor wrap(const Tensor& value, Level& level);
// A tensor of the level for `plain`, which all samples share: with a history and tangents of its
// own, apart from those of `plain`.
Tensor wrap_shared(const Tensor& plain, Level& level);
// Whether `t` has a batch at any level.
bool differs_between_samples(const Tensor& t);
// Whether `t` belongs to each level that `other`, which is batched, belongs to, and has a batch
// where that has one. What is written with `other` must: it gets a history at each of these levels.
bool has_levels_of(const Tensor& t, const Tensor& other);
// The same of any other tensor.
inline bool has_batches_of(const Tensor& t, const Tensor& other) {
  return !is_batched(other) || has_levels_of(t, other);
}
// What all samples of `t` share at this level; undefined otherwise.
Tensor shared_at(const Tensor& t, const Level& level);
// `t` as a tensor of the innermost level: where it belongs to code outside, a shared one. A
// transform inside of vmap differentiates by such a tensor. Outside of vmap, `t` itself.
Tensor lift(const Tensor& t);
// The same for what is written: where it is lifted, each sample has a copy.
Tensor lift_to_write(const Tensor& t);
// Gives a plain tensor a batch of its own, each sample with a copy of what it holds, where nobody
// can tell: only C++ code that is running knows the tensor, and no other looks into its memory
// (what a composite or a formula made to write into). False where that is not so.
bool take_on_batch(const Tensor& t, Level& level);
// The same inside of vmap for what will be written by batched tensors, maybe through views.
inline void prepare_to_write(const Tensor& fresh) {
  if (Level* level = active()) take_on_batch(fresh, *level);
}
// `t`, or of a batched tensor what lies below all levels: for checks of all elements.
Tensor all_samples(const Tensor& t);
// Takes sizes, strides and offset from the value again, after it was written in place.
void refresh_layout(const Tensor& batched);
// Another batched tensor of the same value, storage and level.
Tensor alias(const Tensor& batched);

// What is included outside of a level that was entered with the modes `entered`. What Python code
// watches lies below every level: its modes may come and go inside of one.
KeySet included_outside(const ThreadModes& entered);

// Runs operators as the code outside of a level does, until the end of the scope: on values.
class Outside {
 public:
  explicit Outside(const Level& level);
  ~Outside();
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  const ThreadModes modes_;
  const TangentLevels tangents_;
  Level* const current_;
};

}  // namespace taeda::batching
