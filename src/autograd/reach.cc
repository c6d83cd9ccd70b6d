#include "autograd/reach.h"

#include <unordered_set>

#include "autograd/accumulate.h"
#include "autograd/record.h"

namespace taeda::autograd {

bool reaches_other_leaves(const TensorList& outputs, const TensorList& known) {
  std::unordered_set<const TensorImpl*> own;
  for (const Tensor& t : known) own.insert(t.impl());
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> open;
  const auto visit = [&](const Node* node) {
    if (node && seen.insert(node).second) open.push_back(node);
  };
  for (const Tensor& y : outputs) {
    if (!y.requires_grad()) continue;
    if (y.is_leaf()) {
      if (!own.count(y.impl())) return true;
    } else {
      visit(gradient_edge(y).node.get());
    }
  }
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    const TensorImpl* leaf = node->leaf();
    if (leaf && !own.count(leaf)) return true;
    const EdgeList& edges = node->next_edges();
    for (size_t i = 0; i < edges.size(); i++) visit(edges[i].node.get());
  }
  return false;
}

}  // namespace taeda::autograd
