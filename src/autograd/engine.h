// The engine: runs a graph backward.
//
// run() counts how many edges lead to each reachable node, then runs nodes whose gradients are
// complete, the most recently recorded first. The calling thread does all the work, so backward
// passes from several threads are independent; what they share (leaves' grad, saved tensors) is
// guarded. Hooks and nodes may call run() again, to any depth: every so many levels a fresh thread
// goes on while its caller waits. Nothing here holds Python's lock. Stack depth does not depend on
// the graph's.
#pragma once

#include <functional>

#include "autograd/node.h"

namespace taeda::autograd {

struct RunOptions {
  bool keep_graph = false;
  bool create_graph = false;
  bool accumulate = true;  // add to leaves' grad; false: return the gradients at `inputs`
  bool allow_unreachable = false;
};

class Engine {
 public:
  // Sends grads[i] into roots[i]. `inputs` empty: all leaves; else only what leads to them, and the
  // result has the gradient at each of them (undefined: none arrived), also where `accumulate` is
  // set and they are leaves.
  static TensorList run(const std::vector<Edge>& roots, TensorList grads,
                        const std::vector<Edge>& inputs, const RunOptions& options);
  // The node that runs on this thread now; null outside backward.
  static Node* current_node();
  // Calls `callback` when the innermost running backward has finished: RuntimeError outside of one.
  static void queue_callback(std::function<void()> callback);
  static bool running();
  // Whether the running backward wants the gradients of some inputs only.
  static bool filtered();
  // The number of the innermost running backward on this thread; -1 outside of one.
  static int64_t task_id();
  // Those of all that run inside one another on this thread.
  static std::vector<int64_t> task_ids();
  // Whether the innermost running backward calls `node`, or has its gradient to return.
  static bool reaches(const Node& node);
  // The same of the node with this number that is, if it is alive, at this address.
  static bool reaches(uintptr_t address, uint64_t sequence);
  // The same, of those only whose gradient is returned without calling them.
  static bool only_captures(const Node& node);
  // The nodes of the innermost running backward in the order in which it takes them.
  static std::vector<Node*> execution_order();

 private:
  static TensorList run_here(const std::vector<Edge>& roots, TensorList grads,
                             const std::vector<Edge>& inputs, const RunOptions& options);
};

}  // namespace taeda::autograd
