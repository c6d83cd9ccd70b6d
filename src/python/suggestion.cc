#include "python/suggestion.h"

#include <algorithm>
#include <cstddef>

namespace taeda::python {
namespace {

// Insertions, deletions, replacements and swaps of neighbours that lead from one to the other.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); j++) last[j] = j;
  for (size_t i = 1; i <= a.size(); i++) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); j++) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

// What NumPy, Keras, JAX and papers call the parameters that PyTorch calls otherwise, one name a
// line: ours, then the others. A word may stand in several lines; the function's parameters decide.
constexpr std::string_view kOtherNames[][9] = {
    {"dim", "axis", "axes", "axs", "axi", "axe", "dimension"},
    {"p", "prob", "probability", "rate", "drop_prob", "drop_rate", "dropout_rate", "dropout"},
    {"dropout", "drop_prob", "drop_rate", "dropout_rate", "rate", "p"},
    {"lr", "learning_rate", "step_size", "eta", "alpha", "rate"},
    {"betas", "beta1", "beta2", "beta_1", "beta_2", "b1", "b2"},
    {"weight_decay", "decay", "l2", "wd", "weight_penalty"},
    {"in_features", "in_dim", "input_dim", "input_size", "fan_in", "in_channels", "in_units"},
    {"out_features", "units", "out_dim", "output_dim", "output_size", "fan_out", "out_channels"},
    {"in_channels", "in_features", "channels_in", "input_channels", "in_planes"},
    {"out_channels", "filters", "features", "num_filters", "channels_out", "out_features"},
    {"kernel_size", "ksize", "filter_size", "pool_size", "window_shape", "window"},
    {"bias", "use_bias", "with_bias"},
    {"input", "x", "a", "x1", "logits", "predictions", "y_pred", "tensor"},
    {"other", "y", "b", "x2"},
    {"target", "labels", "label", "y_true", "targets"},
    {"weight", "class_weight", "class_weights", "kernel"},
    {"size", "shape", "sizes"},
    {"shape", "newshape", "new_shape", "size"},
    {"std", "stddev", "sigma", "scale"},
    {"mean", "loc", "mu"},
    {"steps", "num", "n"},
    {"end", "stop"},
    {"min", "a_min", "lower"},
    {"max", "a_max", "upper"},
    {"index", "indices"},
    {"equation", "subscripts"},
    {"descending", "reverse", "decreasing"},
    {"negative_slope", "alpha", "slope"},
    {"num_embeddings", "vocab_size", "vocabulary_size", "input_dim", "num_tokens"},
    {"embedding_dim", "embed_dim", "output_dim", "d_model", "features", "dim"},
    {"embed_dim", "d_model", "hidden_size", "embedding_dim", "dim"},
    {"num_heads", "heads", "n_heads", "nhead", "n_head"},
    {"nhead", "num_heads", "heads", "n_heads", "n_head"},
    {"hidden_size", "units", "num_units", "hidden_dim", "hidden"},
    {"num_features", "num_channels", "channels", "features"},
    {"normalized_shape", "dim", "hidden_size", "num_features", "features"},
    {"eps", "epsilon"},
    {"requires_grad", "trainable", "requires_gradient"},
    {"num_workers", "workers", "worker", "n_workers", "n_jobs"},
    {"num_samples", "n", "num", "n_samples", "size"},
    {"num_classes", "depth", "classes"},
    {"padding", "pad", "pad_width"},
    {"dilation", "dilation_rate", "rate"},
    {"value", "constant_values", "fill"},
    {"correction", "ddof"},
    {"f", "file", "path", "filename"},
};

// 'lr' for 'learning_rate' where `known` has it; empty where it has none of the other names.
std::string_view translated(std::string_view wrong, const std::vector<std::string_view>& known) {
  for (const auto& names : kOtherNames) {
    if (std::find(std::begin(names) + 1, std::end(names), wrong) == std::end(names)) continue;
    if (std::find(known.begin(), known.end(), names[0]) != known.end()) return names[0];
  }
  return {};
}

// 'step_size' for 'step': the one name that begins so; empty where several or none do.
std::string_view only_longer(std::string_view start, const std::vector<std::string_view>& known) {
  std::string_view found;
  for (const std::string_view name : known) {
    if (start.size() < 3 || name == found || name.substr(0, start.size()) != start) continue;
    if (!found.empty()) return {};
    found = name;
  }
  return found;
}

}  // namespace

std::string did_you_mean(std::string_view wrong, const std::vector<std::string_view>& known) {
  if (wrong.empty()) return {};
  std::string_view best = translated(wrong, known);
  size_t fewest = best.empty() ? wrong.size() : 0;
  for (const std::string_view name : known) {
    const size_t edits = edit_distance(wrong, name);
    const size_t allowed = (wrong.size() + name.size() + 3) / 6;
    if (edits <= allowed && edits < fewest) {
      best = name;
      fewest = edits;
    }
  }
  if (best.empty()) best = only_longer(wrong, known);
  if (best.empty()) return {};
  return ". Did you mean '" + std::string(best) + "'?";
}

std::string keywords_text(const std::vector<std::string_view>& known) {
  std::string text;
  for (size_t i = 0; i < known.size(); i++) {
    if (std::find(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(i), known[i]) ==
        known.begin() + static_cast<std::ptrdiff_t>(i))
      text += (i ? ", " : "") + std::string(known[i]);
  }
  return text.empty() ? "it takes no keywords" : "it takes " + text + " by keyword";
}

}  // namespace taeda::python
