#include "python/common_fixes.h"

namespace taeda::python {
namespace {

struct Known {
  std::string_view words;  // in the text, which are PyTorch's
  std::string_view fix;
};

constexpr std::string_view kOneDType =
    "Fix: convert one to the other's dtype, x.to(other.dtype); tensors made of NumPy arrays are "
    "float64, of Python integers int64";
constexpr std::string_view kFloating =
    "Fix: the operator takes floating point: x.float(), or dtype=torch.float32";
constexpr std::string_view kFittingSizes =
    "Fix: sizes must be equal or 1, counted from the last dimension: look at both shapes, and add "
    "a dimension by unsqueeze or [:, None]";
constexpr std::string_view kIndices =
    "Fix: indices run from 0 to one less than that dimension's size: look at dim, and whether the "
    "indices count from 1";
constexpr std::string_view kPadding =
    "Fix: the padding is at most half the kernel: a larger kernel_size, or F.pad before";
constexpr std::string_view kSmallInput =
    "Fix: the window is larger than the input: a smaller kernel_size or dilation, more padding, "
    "larger images, or fewer layers that shrink them";

constexpr Known kKnown[] = {
    {"to have the same dtype, but got", kOneDType},
    {"to have same dtype, but found", kOneDType},
    {"must have the same dtype, but got", kOneDType},
    {"expected scalar type", kOneDType},
    {"Found dtype Long but expected", "Fix: the target is floating point: target.float()"},
    {"can't be cast to the desired output type",
     "Fix: an in-place operator and out= keep the dtype of what they write: write x = x + y, or "
     "convert first, x.float()"},
    {"not implemented for 'Long'", kFloating},
    {"not implemented for 'Int'", kFloating},
    {"not implemented for 'Short'", kFloating},
    {"not implemented for 'Char'", kFloating},
    {"not implemented for 'Byte'", kFloating},
    {"batch1 must be a 3D tensor",
     "Fix: bmm takes (batch, n, m) and (batch, m, p): add the batch by x[None], or use x @ y, "
     "which takes matrices as well"},
    {"batch2 must be a 3D tensor",
     "Fix: bmm takes (batch, n, m) and (batch, m, p): add the batch by x[None], or use x @ y, "
     "which takes matrices as well"},
    {"size mismatch, got input (",
     "Fix: the vector needs as many elements as the matrix has columns: transpose the matrix, "
     "mat.T, or look which dimension is the batch"},
    {"weight tensor should be defined either for all",
     "Fix: weight has one number for each class, in their order: the classes are the input's "
     "dimension 1"},
    {"Given normalized_shape=",
     "Fix: normalized_shape is what the input's shape ends in: x.shape[-1:] normalizes over the "
     "last dimension"},
    {"with size 0", {}},  // no index is right
    {"index out of range in self", kIndices},
    {"is out of bounds for dimension", kIndices},
    {"too many indices for tensor of dimension",
     "Fix: a tensor takes at most one index for each dimension: look at x.shape, or add dimensions "
     "by unsqueeze"},
    {"a view of a leaf Variable that requires grad is being used in an in-place operation",
     "Fix: write under torch.no_grad() where no gradient is wanted, such as for weights; else into "
     "a clone, y = x.clone()"},
    {"Class values must be smaller than num_classes",
     "Fix: num_classes is at least the largest class plus 1; -1 takes it from the input"},
    {"Class values must be non-negative",
     "Fix: classes run from 0: give negative ones, such as an ignored -100, a class of their own "
     "or mask them first"},
    {"one_hot is only applicable to index tensor", "Fix: classes are integers: x.long()"},
    {"expects split_sizes to sum exactly to",
     "Fix: the sizes add up to the dimension's; one number, x.split(2), cuts equal parts with a "
     "smaller last one"},
    {"Output size is too small", kSmallInput},
    {"Invalid computed output size", kSmallInput},
    {"Kernel size can't be greater than actual input size", kSmallInput},
    {"but its components must be at least one", kSmallInput},
    {"should be at most half of", kPadding},
    {"smaller than or equal to half of kernel size", kPadding},
    {"output padding must be smaller than either stride or dilation",
     "Fix: output_padding adds at one side what a stride leaves open, from 0 to stride - 1: for a "
     "larger output a larger stride, or F.pad after"},
    {"only supports boolean masks",
     "Fix: make the mask boolean: mask.bool(), or a comparison such as mask != 0"},
    {"The expanded size of the tensor",
     "Fix: sizes must be equal or 1, counted from the last dimension: look at both shapes; a "
     "missing dimension is added by unsqueeze"},
    {"target tensor expected, multi-target not supported",
     "Fix: classes are one a row, without a last dimension of 1: target.squeeze(1); probabilities "
     "are floating point and need the input's shape, one for each class"},
    {"Expected dtype int32/int64 for index", "Fix: indices are integers: index.long()"},
    {"doesn't match the broadcast shape",
     "Fix: what is written in place keeps its shape: write x = x + y for the broadcast result"},
    {"Padding size should be less than the corresponding input dimension",
     "Fix: reflection needs more elements than it pads: mode='replicate', or less padding"},
    {"does not appear in the equation for any input operand",
     "Fix: the letters after -> are letters of the operands"},
};

}  // namespace

std::string_view common_fix(std::string_view text) noexcept {
  for (const Known& known : kKnown)
    if (text.find(known.words) != text.npos) return known.fix;
  return {};
}

}  // namespace taeda::python
