// Traces: which operators a function called, as a straight-line program that runs again.
//
//   using namespace taeda::jit;
//   const Program program = trace([](TensorSpan x) { return TensorList{x[0] * 2.0 + x[1]}; },
//                                 TensorList{ones({2}), ones({2})});
//   assert(program.nodes.size() == 2 && program.nodes[0].op->name() == "aten::mul");
//   assert(program.run(TensorList{full({2}, 3.0), ones({2})})[0].sum().item<float>() == 14);
//
// A program is what happened, not what the function says: sizes, numbers and the branches taken are
// those of the recorded call. Tensors that the function found elsewhere (parameters) are constants,
// by reference. Tensors have numbers, in the order in which they were first seen; what an operator
// returns has a number of its own, also where it is the argument that was written. Writes and views
// are operators like others, so a program writes what the function wrote.
//
// Tracing is a mode of the calling thread (Key::kTrace) and costs nothing while it is off.
// docs/notes/dispatch.md says what is recorded inside of other modes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "taeda/operator.h"

namespace taeda::jit {

// The number of what is undefined.
inline constexpr int kNoValue = -1;

// An argument or a result of a call: a tensor, a list of tensors, or what it is.
struct Operand {
  enum class Kind : uint8_t { kConstant, kTensor, kTensors };
  Kind kind = Kind::kConstant;
  Value constant;
  std::vector<int> values;  // numbers: one of kTensor, any number of kTensors
};

// One call. `grad_enabled` is no_grad's state; the program runs it under the same.
struct Node {
  const Operator* op = nullptr;
  std::vector<Operand> arguments, results;
  bool grad_enabled = true;
};

// What is known of a tensor besides its number: values of one `memory` are views of each other.
struct ValueInfo {
  DType dtype = DType::kFloat32;
  DimVector sizes;
  int memory = 0;
};

struct Constant {
  int value;
  Tensor tensor;
};

struct Program {
  std::vector<int> inputs, outputs;
  std::vector<Constant> constants;
  std::vector<Node> nodes;
  std::vector<ValueInfo> values;  // by number

  // One line a call: "%2 = aten::add.Tensor(%0, %1)". Arguments at the end that have their default
  // are left out.
  std::string text() const;
  // The outputs for other inputs: RuntimeError for another number of them. Operators are called as
  // a program calls them: recorded by autograd, seen by modes.
  TensorList run(TensorSpan inputs) const;
  // Removes calls whose results nobody reads. What writes into memory that is read, or that belongs
  // to an input or a constant, stays, and so do random numbers: those after them depend on it.
  void remove_dead_code();
};

struct TraceOptions {
  // Whether an operator that is made of others is one call. Where its arguments are differentiated
  // its parts are recorded in any case.
  bool composites = true;
};

// Records operators of this thread from its construction to finish(). The inputs are numbered in
// their order. RuntimeError where the thread is being traced already.
class Recording {
 public:
  explicit Recording(TensorSpan inputs, const TraceOptions& options = {});
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Ends it.
  Program finish(TensorSpan outputs);

 private:
  void stop();
  std::unique_ptr<class Tracer> tracer_;
  bool included_ = false, excluded_ = false;  // whether kTrace was
};

// The program of function(inputs).
Program trace(const std::function<TensorList(TensorSpan)>& function, TensorSpan inputs,
              const TraceOptions& options = {});

// Whether operators of this thread are being recorded.
bool is_tracing();

}  // namespace taeda::jit
