#include "ops/functionalize/memory.h"

#include <algorithm>
#include <numeric>

#include "core/strides.h"
#include "ops/modes.h"
#include "ops/view_rules.h"

namespace taeda::functionalize {
namespace {

// The order of dimensions in memory, outermost first.
DimVector memory_order(IntSpan strides) {
  DimVector order(strides.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)];
  });
  return order;
}

// Whether a view has the elements of what it is made of in sizes that are an argument: any operator
// that gives these may make it again.
bool is_given_sizes(const Operator& op) {
  return op.record() && op.record()->inverse == OperatorRecord::Inverse::kSizes &&
         op.schema().find("size") >= 0;
}

}  // namespace

int Memory::find(const Tensor& t) {
  const Layout layout(t);
  if (layout == whole_) return kWhole;
  for (size_t i = 0; i < views_.size(); i++)
    if (views_[i].layout == layout) return static_cast<int>(i);
  static const Operator* const as_strided = find_operator("aten::as_strided");
  add(t, kWhole, *as_strided, {});
  return static_cast<int>(views_.size()) - 1;
}

void Memory::add(const Tensor& view, int parent, const Operator& op, Stack arguments) {
  const Layout layout(view);
  if (layout == whole_) return;
  for (const KnownView& known : views_)
    if (known.layout == layout) return;
  views_.push_back({layout, parent, &op, std::move(arguments), Tensor(), 0, false});
}

Tensor Memory::elements(const Tensor& rows, DType dtype) {
  if (dtype == whole_.dtype) return rows;
  if (is_complex(whole_.dtype) && dtype == to_real(whole_.dtype)) {
    const bool plain = (rows.impl()->keys & kMathBits).empty();
    return show("aten::view_as_real", "", {plain ? rows : call("aten::clone", "", {rows})},
                copies());
  }
  TD_CHECK_IMPLEMENTED(is_complex(dtype) && to_real(dtype) == whole_.dtype && rows.numel() % 2 == 0,
                       "functionalize: a view by strides of dtype {} of a tensor of dtype {}",
                       dtype, whole_.dtype);
  return show("aten::view_as_complex", "", {viewed(rows, {rows.numel() / 2, 2}, copies())},
              copies());
}

Tensor Memory::from_elements(const Tensor& elements, IntSpan sizes) {
  if (elements.dtype() == whole_.dtype) return elements;
  const bool pairs = is_complex(whole_.dtype);
  const Tensor whole =
      show(pairs ? "aten::view_as_complex" : "aten::view_as_real", "", {elements}, copies());
  return pairs ? whole : viewed(whole, sizes, copies());
}

Tensor Memory::strided(const KnownView& view, const Tensor* written) {
  const DimVector order = memory_order(whole_.strides);
  const bool sorted = std::is_sorted(order.begin(), order.end());
  Tensor rows = sorted ? value_ : show("aten::permute", "", {value_, IntSpan(order)}, copies());
  if (!rows.is_contiguous()) rows = call("aten::clone", "", {rows, MemoryFormat::kContiguous});
  const Tensor from = elements(rows, view.layout.dtype);
  if (!written)
    return show("aten::as_strided", "",
                {from, IntSpan(view.layout.sizes), IntSpan(view.layout.strides),
                 view.layout.offset + from.storage_offset()},
                copies());
  const Tensor scattered =
      call("aten::as_strided_scatter", "",
           {from, *written, IntSpan(view.layout.sizes), IntSpan(view.layout.strides),
            view.layout.offset + from.storage_offset()});
  const Tensor filled = from_elements(scattered, rows.sizes());
  if (sorted) return filled;
  return show("aten::permute", "", {filled, IntSpan(rules::inverse_permutation(order))}, copies());
}

Tensor Memory::value(int i) {
  if (i == kWhole) return value_;
  KnownView& view = views_[static_cast<size_t>(i)];
  const bool recording = thread_modes.grad_enabled;
  if (view.value.defined() && view.generation == generation_ && (view.recorded || !recording))
    return view.value;
  Tensor made;
  if (view.arguments.empty()) {
    made = strided(view, nullptr);
  } else {
    const Tensor parent = value(view.parent);
    if (is_given_sizes(*view.op)) {
      made = viewed(parent, views_[static_cast<size_t>(i)].layout.sizes, copies());
    } else {
      Stack stack = view.arguments;
      stack[0] = parent;
      made = show(*view.op, std::move(stack), copies());
    }
  }
  KnownView& kept = views_[static_cast<size_t>(i)];
  kept.value = made;
  kept.generation = generation_;
  kept.recorded = recording;
  return made;
}

// The parent's value when the view's is `value`; undefined where it is known by the strides of the
// whole only.
Tensor Memory::inverse(const KnownView& view, const Tensor& parent, const Tensor& value) {
  const Stack& a = view.arguments;
  if (a.empty()) return strided(view, &value);
  using Inverse = OperatorRecord::Inverse;
  const OperatorRecord* const record = view.op->record();  // none: a library's view
  switch (record ? record->inverse : Inverse::kNone) {
    case Inverse::kNone:
    case Inverse::kStrides:
      return Tensor();
    case Inverse::kSizes:
      return viewed(value, parent.sizes(), copies());
    case Inverse::kItself: {
      Stack stack = a;
      stack[0] = value;
      return show(*view.op, std::move(stack), copies());
    }
    case Inverse::kOrder: {
      const DimVector order = rules::inverse_permutation(IntSpan(a[1].ints()));
      return show(*view.op, {value, IntSpan(order)}, copies());
    }
    case Inverse::kDtype:
      return show(*view.op, {value, parent.dtype()}, copies());
    case Inverse::kScatter: {
      Stack stack = a;
      stack[0] = parent;
      stack.insert(stack.begin() + 1, value);
      const std::string scatter = std::string(view.op->name()) + "_scatter";
      return call(scatter.c_str(), "", std::move(stack));
    }
    case Inverse::kComplex:
      return show(value.is_complex() ? "aten::view_as_real" : "aten::view_as_complex", "", {value},
                  copies());
  }
  return Tensor();
}

// Whether no two elements of a view's parent lie at one address. Where two do, a write to the one
// changes the other, so that the view is written by its strides in the whole.
bool Memory::has_own_elements(int parent, const KnownView& view) const {
  const Layout& layout = parent == kWhole ? whole_ : views_[static_cast<size_t>(parent)].layout;
  if (internal_overlap(layout.sizes, layout.strides) == Overlap::kNo) return true;
  TD_CHECK(parent != kWhole && view.layout.bits == whole_.bits,
           "functionalize: unsupported operation: a write to a view of a tensor of which more than "
           "one element refers to a single memory location. Please clone() the tensor before "
           "performing the operation.");
  return false;
}

void Memory::write(int i, const Tensor& value) {
  written = true;
  std::vector<std::pair<int, Tensor>> path;  // the views whose values are known now
  Tensor now = value;
  while (i != kWhole) {
    const KnownView view = views_[static_cast<size_t>(i)];
    path.emplace_back(i, now);
    Tensor above = has_own_elements(view.parent, view)
                       ? inverse(view, this->value(view.parent), now)
                       : Tensor();
    if (above.defined()) {
      i = view.arguments.empty() ? kWhole : view.parent;
      now = std::move(above);
    } else {
      now = strided(view, &now);
      i = kWhole;
    }
  }
  value_ = std::move(now);
  generation_++;
  for (auto& [k, known] : path) {
    KnownView& view = views_[static_cast<size_t>(k)];
    view.value = std::move(known);
    view.generation = generation_;
    view.recorded = thread_modes.grad_enabled;
  }
  for (Storage* storage : {plain, detached})
    if (storage) storage->bump_version();
}

void Memory::replace(const Tensor& shown, const Tensor& value) {
  whole_ = Layout(shown);
  views_.clear();
  write(kWhole, value);
}

}  // namespace taeda::functionalize
