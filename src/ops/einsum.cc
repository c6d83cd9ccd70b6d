// einsum: Einstein summation, as a sequence of batched matrix products.
//
// Every operand gets its dimensions labelled by letters; "..." expands to labels of its own.
// Operands are taken from left to right: with each, the labels that no later operand and not the
// output needs are summed out by the product itself. A pair of operands is brought into the form
// (batch, left, inner) x (batch, inner, right) and goes to bmm.
#include <algorithm>
#include <array>

#include "op/bmm.h"
#include "op/diagonal.h"
#include "op/expand.h"
#include "op/mul.h"
#include "op/permute.h"
#include "op/reshape.h"
#include "op/sum.h"
#include "op/to_dtype.h"
#include "op/unsqueeze.h"
#include "op/view.h"
#include "ops/contract.h"
#include "ops/linalg_rules.h"

namespace taeda {

namespace {

// Labels: letters are 0..51, the dimensions of "..." follow, counted from the right.
constexpr int kLetters = 52;
constexpr int kEllipsis = -1;
using Labels = std::vector<int>;

int label_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  return -2;
}

// One operand's or the output's subscripts; kEllipsis stands for "...".
Labels parse(std::string_view text, std::string_view what) {
  Labels labels;
  for (size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c == '.') {
      TD_CHECK(text.substr(i, 3) == "...",
               "einsum(): found '.' for {} that is not part of any ellipsis", what);
      TD_CHECK(std::count(labels.begin(), labels.end(), kEllipsis) == 0,
               "einsum(): found '.' for {} for which an ellipsis was already found", what);
      labels.push_back(kEllipsis);
      i += 2;
      continue;
    }
    const int label = label_of(c);
    TD_CHECK(label >= 0,
             "einsum(): invalid subscript given at index {} in the equation string, subscripts "
             "must be in [a-zA-Z]",
             static_cast<int64_t>(i));
    labels.push_back(label);
  }
  return labels;
}

// The subscripts as a program writes them.
std::string spelled(const Labels& labels) {
  std::string text;
  for (const int label : labels) {
    if (label == kEllipsis)
      text += "...";
    else
      text += static_cast<char>(label < 26 ? 'A' + label : 'a' + label - 26);
  }
  return text;
}

// "..." of `count` dimensions becomes the last `count` of the ellipsis labels.
Labels expand_ellipsis(const Labels& labels, int64_t count, int64_t widest) {
  Labels out;
  for (const int label : labels) {
    if (label != kEllipsis) {
      out.push_back(label);
      continue;
    }
    for (int64_t i = widest - count; i < widest; i++) out.push_back(kLetters + static_cast<int>(i));
  }
  return out;
}

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

struct Operand {
  Tensor tensor;
  Labels labels;
  int64_t size(int label) const {
    const auto at = std::find(labels.begin(), labels.end(), label);
    return at == labels.end() ? 1 : tensor.size(at - labels.begin());
  }
};

// A label that appears twice in one operand means its diagonal.
Operand take_diagonals(Operand x, int64_t index) {
  for (size_t i = 0; i < x.labels.size(); i++) {
    for (size_t j = i + 1; j < x.labels.size(); j++) {
      if (x.labels[i] != x.labels[j]) continue;
      const int64_t a = static_cast<int64_t>(i), b = static_cast<int64_t>(j);
      TD_CHECK(x.tensor.size(a) == x.tensor.size(b),
               "einsum(): subscript is repeated for operand {} but the sizes don't match, {} != {}",
               index, x.tensor.size(b), x.tensor.size(a));
      x.tensor = op::diagonal(x.tensor, 0, a, b);  // becomes the last dimension
      const int label = x.labels[i];
      x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(j));
      x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(i));
      x.labels.push_back(label);
      i = static_cast<size_t>(-1);  // the positions have changed: look again
      break;
    }
  }
  return x;
}

Operand sum_out(Operand x, const Labels& unwanted) {
  DimVector dims;
  Labels kept;
  for (size_t i = 0; i < x.labels.size(); i++) {
    if (contains(unwanted, x.labels[i]))
      dims.push_back(static_cast<int64_t>(i));
    else
      kept.push_back(x.labels[i]);
  }
  if (!dims.empty()) x.tensor = op::sum(x.tensor, OptInts(dims), false, std::nullopt);
  x.labels = kept;
  return x;
}

// The operand's dimensions in the order of `labels`, missing ones having size 1.
Tensor arranged(const Operand& x, const Labels& labels) {
  DimVector order;
  for (const int label : labels) {
    const auto at = std::find(x.labels.begin(), x.labels.end(), label);
    if (at != x.labels.end()) order.push_back(at - x.labels.begin());
  }
  Tensor t = op::permute(x.tensor, order);
  for (size_t i = 0; i < labels.size(); i++) {
    if (!contains(x.labels, labels[i])) t = op::unsqueeze(t, static_cast<int64_t>(i));
  }
  return t;
}

// The product of two operands, summed over the labels for which `needed` is false.
template <class Needed>
Operand contracted(Operand a, Operand b, const Labels& output, const Needed& needed) {
  Labels only_a, only_b;
  for (const int l : a.labels)
    if (!needed(l) && !contains(b.labels, l)) only_a.push_back(l);
  for (const int l : b.labels)
    if (!needed(l) && !contains(a.labels, l)) only_b.push_back(l);
  // A summed label of size 1 on one side broadcasts: the other side can be summed at once.
  for (const int l : a.labels) {
    if (needed(l) || !contains(b.labels, l) || a.size(l) == b.size(l)) continue;
    only_a.push_back(l), only_b.push_back(l);
  }
  const bool alike = a.tensor.dtype() == b.tensor.dtype();
  a = sum_out(std::move(a), only_a);
  b = sum_out(std::move(b), only_b);
  if (alike && a.tensor.dtype() != b.tensor.dtype()) {  // one of them was summed: int64
    a.tensor = op::to_dtype(a.tensor, DType::kInt64, false, std::nullopt);
    b.tensor = op::to_dtype(b.tensor, DType::kInt64, false, std::nullopt);
  }

  Labels batch, left, right, inner;
  for (const int l : a.labels) {
    if (!contains(b.labels, l))
      left.push_back(l);
    else if (needed(l))
      batch.push_back(l);
    else
      inner.push_back(l);
  }
  for (const int l : b.labels)
    if (!contains(a.labels, l)) right.push_back(l);

  if (inner.empty()) {  // a product of elements, whose dtypes promote
    Labels all;         // those of the output in its order
    for (const int l : output)
      if (contains(a.labels, l) || contains(b.labels, l)) all.push_back(l);
    for (const Labels& labels : {a.labels, right})
      for (const int l : labels)
        if (!contains(all, l)) all.push_back(l);
    return {op::mul(arranged(a, all), arranged(b, all)), all};
  }
  DimVector batch_sizes, left_sizes, right_sizes, inner_sizes;
  for (const int l : batch)
    batch_sizes.push_back(std::max(a.size(l), b.size(l)) * (std::min(a.size(l), b.size(l)) != 0));
  for (const int l : left) left_sizes.push_back(a.size(l));
  for (const int l : right) right_sizes.push_back(b.size(l));
  for (const int l : inner) inner_sizes.push_back(a.size(l));
  const auto join = [](const Labels& x, const Labels& y, const Labels& z) {
    Labels all(x);
    all.insert(all.end(), y.begin(), y.end());
    all.insert(all.end(), z.begin(), z.end());
    return all;
  };
  const auto sizes = [](IntSpan x, IntSpan y, IntSpan z) {
    DimVector all(x);
    for (const int64_t v : y) all.push_back(v);
    for (const int64_t v : z) all.push_back(v);
    return all;
  };
  const int64_t n = rules::product(batch_sizes), rows = rules::product(left_sizes),
                cols = rules::product(right_sizes), depth = rules::product(inner_sizes);
  const Tensor x = op::reshape(op::expand(arranged(a, join(batch, left, inner)),
                                          sizes(batch_sizes, left_sizes, inner_sizes), false),
                               DimVector{n, rows, depth});
  const Tensor y = op::reshape(op::expand(arranged(b, join(batch, inner, right)),
                                          sizes(batch_sizes, inner_sizes, right_sizes), false),
                               DimVector{n, depth, cols});
  return {op::reshape(op::bmm(x, y), sizes(batch_sizes, left_sizes, right_sizes)),
          join(batch, left, right)};
}

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
  bool explicit_output = false;
};

Equation parse_equation(std::string_view equation) {
  Equation parsed;
  const size_t arrow = equation.find("->");
  std::string_view left = equation.substr(0, arrow);
  if (arrow != std::string_view::npos) {
    parsed.explicit_output = true;
    parsed.output = parse(equation.substr(arrow + 2), "the output");
  }
  while (true) {
    const size_t comma = left.find(',');
    parsed.inputs.push_back(parse(left.substr(0, comma), "an operand"));
    if (comma == std::string_view::npos) return parsed;
    left.remove_prefix(comma + 1);
  }
}

}  // namespace

namespace impl {

Tensor einsum(std::string_view equation, TensorSpan tensors) {
  TD_CHECK_VALUE(!tensors.empty(),
                 "einsum(): must specify the equation string and at least one operand, or at least "
                 "one operand and its subscripts list");
  contract::same_device("einsum", "operands", tensors);
  Equation parsed = parse_equation(equation);
  TD_CHECK(parsed.inputs.size() <= tensors.size(),
           "einsum(): fewer operands were provided than specified in the equation");
  TD_CHECK(parsed.inputs.size() >= tensors.size(),
           "einsum(): more operands were provided than specified in the equation");

  int64_t widest = 0;
  bool any_ellipsis = false;
  std::vector<int64_t> hidden(tensors.size());
  for (size_t i = 0; i < tensors.size(); i++) {
    const Labels& labels = parsed.inputs[i];
    const bool ellipsis = contains(labels, kEllipsis);
    const int64_t named = static_cast<int64_t>(labels.size()) - ellipsis;
    TD_CHECK(ellipsis ? named <= tensors[i].dim() : named == tensors[i].dim(),
             "einsum(): the number of subscripts in the equation ({}) does not match the number of "
             "dimensions ({}) for "
             "operand {}{}: '{}' is to name the dimensions of a tensor of sizes {}\nFix: write one "
             "letter for each dimension ({}), or ... for those without",
             named, tensors[i].dim(), static_cast<int64_t>(i),
             ellipsis ? "" : " and no ellipsis was given", spelled(labels), tensors[i].sizes(),
             tensors[i].dim());
    hidden[i] = ellipsis ? tensors[i].dim() - named : 0;
    widest = std::max(widest, hidden[i]);
    any_ellipsis = any_ellipsis || ellipsis;
  }
  std::vector<int> count(static_cast<size_t>(kLetters + widest), 0);
  std::vector<Operand> operands;
  for (size_t i = 0; i < tensors.size(); i++) {
    Operand x{tensors[i], expand_ellipsis(parsed.inputs[i], hidden[i], widest)};
    for (const int l : x.labels) count[static_cast<size_t>(l)]++;
    operands.push_back(take_diagonals(std::move(x), static_cast<int64_t>(i)));
  }
  if (!parsed.explicit_output) {  // the ellipsis, then the letters that appear once
    if (any_ellipsis) parsed.output.push_back(kEllipsis);
    for (int l = 0; l < kLetters; l++)
      if (count[static_cast<size_t>(l)] == 1) parsed.output.push_back(l);
  }
  const Labels output = expand_ellipsis(parsed.output, widest, widest);
  for (size_t i = 0; i < output.size(); i++) {
    TD_CHECK(count[static_cast<size_t>(output[i])] > 0,
             "einsum(): output subscript {} does not appear in the equation for any input "
             "operand",
             spelled({output[i]}));
    TD_CHECK(std::count(output.begin(), output.end(), output[i]) == 1,
             "einsum(): output subscript {} appears more than once in the output",
             spelled({output[i]}));
  }
  for (size_t i = 0; i < operands.size(); i++) {  // sizes of a label agree or broadcast
    for (const int l : operands[i].labels) {
      for (size_t j = 0; j < i; j++) {
        const int64_t a = operands[i].size(l), b = operands[j].size(l);
        const bool agree = a == b || a == 1 || b == 1;
        TD_CHECK(agree || l >= kLetters,
                 "einsum(): subscript {} has size {} for operand {} which does not broadcast with "
                 "previously seen size {} for operand {}",
                 spelled({l}), a, static_cast<int64_t>(i), b, static_cast<int64_t>(j));
        TD_CHECK(agree,
                 "einsum(): dimension {} covered by ellipsis in operand {} has size {} which does "
                 "not broadcast with previously seen ellipsis with size {} for the respective "
                 "dimension of operand {}",
                 l - kLetters - widest + hidden[i], static_cast<int64_t>(i), a, b,
                 static_cast<int64_t>(j));
      }
    }
  }

  Operand result = operands[0];
  for (size_t next = 1; next < operands.size(); next++) {
    result = contracted(std::move(result), operands[next], output, [&](int label) {
      if (contains(output, label)) return true;
      for (size_t later = next + 1; later < operands.size(); later++)
        if (contains(operands[later].labels, label)) return true;
      return false;
    });
  }
  if (operands.size() > 1) {  // each label that is left is one of the output
    if (result.labels == output) return result.tensor;
    const Tensor permuted = arranged(result, output);
    return op::view(permuted, permuted.sizes());  // the step that histories end with in PyTorch
  }
  Labels all(output);
  DimVector summed;
  for (const int l : result.labels) {
    if (contains(output, l)) continue;
    summed.push_back(static_cast<int64_t>(all.size()));
    all.push_back(l);
  }
  const Tensor permuted = arranged(result, all);
  return summed.empty() ? permuted : op::sum(permuted, OptInts(summed), false, std::nullopt);
}

}  // namespace impl

}  // namespace taeda
