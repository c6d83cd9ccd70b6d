// Anomaly mode, and what only a host language knows: its stack.
#pragma once

#include <atomic>
#include <string>

#include "autograd/node.h"

namespace taeda::autograd {

// Filled by the Python bindings; the defaults serve C++ programs.
struct PythonBridge {
  // The stack of the calling Python code; null where none runs.
  Ref<Traceback> (*capture)();
  // What turns anomaly mode on, as a program of the language writes it.
  const char* anomaly_call;
};
extern PythonBridge python_bridge;

extern std::atomic<bool> anomaly_enabled, anomaly_checks_nan;

// In anomaly mode: notes on a fresh node where its operator was called.
void note_creation(Node& node);
// The number that the next node of this thread gets.
uint64_t next_sequence();
// The operator that last wrote into the tensor's memory since `node` saved it at that version;
// empty where that is not among the last writes. Needs no anomaly mode.
std::string_view writer_of(const Tensor& tensor, uint32_t saved_version, const Node& node);
// Names the last write into the tensor's memory as the program wrote it; a literal.
void rename_write(const Tensor& written, const char* what);
// In anomaly mode: notes where `op` wrote into the memory of `written`.
void note_mutation(std::string_view op, const Tensor& written);
// "written by mul_ at\n<stack>" when a mutation of this memory was noted; empty otherwise.
std::string mutation_text(const Tensor& tensor);

// Warns where the operator of the failing node was called, and of the nodes whose backward made it.
void warn_failure(const Node& node);
// RuntimeError "Function 'LogBackward0' returned nan values in its 0th output."
void check_nan(const Node& node, const TensorList& outputs);

}  // namespace taeda::autograd
