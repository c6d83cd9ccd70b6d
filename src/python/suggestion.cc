#include "python/suggestion.h"

#include <algorithm>

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

// NumPy's names of what has another name in PyTorch.
std::string_view translated(std::string_view name) {
  if (name == "axis" || name == "axes" || name == "axs" || name == "axi") return "dim";
  return name;
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
  const std::string_view meant = translated(wrong);
  std::string_view best;
  size_t fewest = meant.size();
  for (const std::string_view name : known) {
    const size_t edits = edit_distance(meant, name);
    const size_t allowed = (meant.size() + name.size() + 3) / 6;
    if (edits <= allowed && edits < fewest) {
      best = name;
      fewest = edits;
    }
  }
  if (best.empty()) best = only_longer(meant, known);
  if (best.empty()) return {};
  return ". Did you mean '" + std::string(best) + "'?";
}

}  // namespace taeda::python
