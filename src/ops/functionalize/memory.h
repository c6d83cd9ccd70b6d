// What functionalize is made of: levels, memories, and calls on values (functionalize.h).
#pragma once

#include <memory>
#include <vector>

#include "ops/batching/level.h"
#include "ops/functionalize.h"
#include "taeda/operator.h"

namespace taeda::batching {
struct Level;
}

namespace taeda::functionalize {

struct Level {
  Level* outer;
  ThreadModes modes;  // of the caller
  bool copies_views;
  int depth;
  batching::TangentLevels tangents;  // as batching::Level's
  uint64_t forward_floor;
  batching::Level* batch;  // of vmap, around it
};
// The handler of kFunctionalize for all operators.
void handle(const Operator& op, KeySet keys, Stack& stack);
// The innermost level of the calling thread; null where there is none.
Level* current_level();

// The modes of a level's caller, until the end of the scope. What the program switched off by
// itself, recording, stays off.
class Outside {
 public:
  Outside();
  ~Outside();
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  Level* const level_;
  const ThreadModes modes_;
  const batching::TangentLevels tangents_;
  batching::Level* const batch_;
};

// An operator by name, on values, outside of the innermost level. Arguments left out at the end are
// their defaults.
Tensor call(const char* name, const char* overload, Stack stack);
// A view operator: with `copies_views` the operator NAME_copy in its place.
Tensor show(const Operator& op, Stack stack, bool copies_views);
Tensor show(const char* name, const char* overload, Stack stack, bool copies_views);
// With other sizes: a view where the strides allow one.
Tensor viewed(const Tensor& t, IntSpan sizes, bool copies_views);

// --- what a storage without memory stands for ---

struct Layout {
  explicit Layout(const Tensor& t)
      : sizes(t.sizes()),
        strides(t.strides()),
        offset(t.storage_offset()),
        dtype(t.dtype()),
        bits(t.impl()->keys & kMathBits) {}
  bool operator==(const Layout&) const = default;
  DimVector sizes, strides;
  int64_t offset;
  DType dtype;
  KeySet bits;
};

inline constexpr int kWhole = -1;

// Tensors of one layout in one memory have the same elements, so a view is known by its layout.
struct KnownView {
  Layout layout;
  int parent;          // another view, or kWhole
  const Operator* op;  // makes it of its parent
  Stack arguments;     // the first one left out
  Tensor value;        // as of `generation`
  uint64_t generation;
  bool recorded;  // autograd recorded how the value was made
};

class Memory {
 public:
  Memory(Tensor value, const Tensor& shown, int depth)
      : depth(depth), whole_(shown), value_(std::move(value)) {}

  const int depth;
  bool written = false;
  Storage *plain = nullptr, *detached = nullptr;  // those that stand for it now; borrowed

  int find(const Tensor& t);
  void add(const Tensor& view, int parent, const Operator& op, Stack arguments);
  Tensor value(int view);
  void write(int view, const Tensor& value);
  // The whole gets another value, of any size.
  void replace(const Tensor& shown, const Tensor& value);

 private:
  bool has_own_elements(int parent, const KnownView& view) const;
  Tensor inverse(const KnownView& view, const Tensor& parent, const Tensor& value);
  // The row-major whole as elements of a view's dtype, where a complex number is two real ones, and
  // the way back.
  Tensor elements(const Tensor& rows, DType dtype);
  Tensor from_elements(const Tensor& elements, IntSpan sizes);
  // A view that is known by its strides alone. Where `written` is given, the whole with that in
  // the view's place.
  Tensor strided(const KnownView& view, const Tensor* written);
  bool copies() const { return current_level()->copies_views; }

  Layout whole_;
  Tensor value_;
  std::vector<KnownView> views_;
  uint64_t generation_ = 0;
};

// The context of a storage without memory. What detach() gives has a storage of its own, so that
// it is known to be cut off from the history of the value.
struct Context {
  std::shared_ptr<Memory> memory;
  bool detached;
};

// The context of a tensor of the innermost level; null for other tensors. RuntimeError for one of a
// level that has ended.
Context* functional(const Tensor& t);
// The storage that stands for a memory.
Ref<Storage> storage_for(const Tensor& shown, std::shared_ptr<Memory> memory, bool detached);

}  // namespace taeda::functionalize
