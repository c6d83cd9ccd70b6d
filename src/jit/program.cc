// Programs as text, running them, and leaving out what nobody reads.
#include <algorithm>
#include <charconv>
#include <complex>

#include "ops/modes.h"
#include "ops/overloads.h"
#include "taeda/autograd.h"
#include "taeda/trace.h"

namespace taeda::jit {
namespace {

// --- text ---

std::string real_text(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  std::string text(buffer, end);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

template <class List, class Text>
std::string list_text(const List& list, const Text& text) {
  std::string all = "[";
  for (size_t i = 0; i < list.size(); i++) all += (i ? ", " : "") + text(list[i]);
  return all + "]";
}

struct ValueText {
  std::string operator()(std::monostate) const { return "None"; }
  std::string operator()(bool value) const { return value ? "True" : "False"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return real_text(value); }
  std::string operator()(std::complex<double> value) const {
    return "(" + real_text(value.real()) + (std::signbit(value.imag()) ? "" : "+") +
           real_text(value.imag()) + "j)";
  }
  std::string operator()(const std::string& text) const { return "'" + text + "'"; }
  std::string operator()(const Value::Ints& values) const {
    return list_text(values, [](int64_t value) { return std::to_string(value); });
  }
  std::string operator()(const Value::Floats& values) const { return list_text(values, real_text); }
  std::string operator()(const Value::Bools& values) const {
    return list_text(values, [](bool value) { return std::string(value ? "True" : "False"); });
  }
  std::string operator()(DType value) const { return format("{}", value); }
  std::string operator()(Layout) const { return "strided"; }
  std::string operator()(Device value) const { return format("'{}'", value); }
  std::string operator()(MemoryFormat value) const {
    constexpr const char* kNames[] = {"contiguous_format", "preserve_format", "channels_last",
                                      "channels_last_3d"};
    return kNames[static_cast<int>(value)];
  }
  // Never kept: tensors have numbers, generators are refused.
  std::string operator()(const Tensor&) const { return "Tensor"; }
  std::string operator()(const TensorList&) const { return "Tensor[]"; }
  std::string operator()(Generator*) const { return "Generator"; }
};

std::string number_text(int value) {
  return value == kNoValue ? "None" : "%" + std::to_string(value);
}

std::string operand_text(const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::kTensor:
      return number_text(operand.values[0]);
    case Operand::Kind::kTensors:
      return list_text(operand.values, number_text);
    default:
      return std::visit(ValueText(), operand.constant.data());
  }
}

bool is_default(const SchemaArgument& argument, const Operand& operand) {
  return argument.has_default && operand.kind == Operand::Kind::kConstant &&
         operand_text(operand) == std::visit(ValueText(), argument.default_value.data());
}

std::string call_text(const Node& node) {
  const auto& arguments = node.op->schema().arguments;
  size_t shown = node.arguments.size();
  while (shown > 0 && is_default(arguments[shown - 1], node.arguments[shown - 1])) shown--;
  std::string text;
  for (size_t i = 0; i < shown; i++) {
    if (arguments[i].keyword_only && is_default(arguments[i], node.arguments[i])) continue;
    text += text.empty() ? "" : ", ";
    if (arguments[i].keyword_only) text += arguments[i].name + "=";
    text += operand_text(node.arguments[i]);
  }
  return node.op->qualified_name() + "(" + text + ")";
}

std::string join(const std::vector<int>& values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : ", ") + number_text(value);
  return text;
}

}  // namespace

std::string Program::text() const {
  const auto typed = [&](int value) {
    const ValueInfo& info = values[static_cast<size_t>(value)];
    return format("%{}: {}{}", value, info.dtype, IntSpan(info.sizes));
  };
  std::string text = "program(";
  for (const int input : inputs) text += (text.back() == '(' ? "" : ", ") + typed(input);
  text += "):\n";
  for (const Constant& constant : constants) text += "  " + typed(constant.value) + " = constant\n";
  for (const Node& node : nodes) {
    std::string results;
    for (const Operand& result : node.results)
      results += (results.empty() ? "" : ", ") + operand_text(result);
    text += "  " + (results.empty() ? "" : results + " = ") + call_text(node) + "\n";
  }
  return text + "  return " + join(outputs) + "\n";
}

// --- running ---

namespace {

template <class Visit>
void each_number(const std::vector<Operand>& operands, const Visit& visit) {
  for (const Operand& operand : operands)
    for (const int value : operand.values)
      if (value != kNoValue) visit(static_cast<size_t>(value));
}

// The values of a run.
class Frame {
 public:
  explicit Frame(size_t count) : tensors_(count) {}
  Tensor& operator[](int number) { return tensors_[static_cast<size_t>(number)]; }

  Value argument(const Operand& operand) {
    if (operand.kind == Operand::Kind::kConstant) return operand.constant;
    TensorList list;
    for (const int value : operand.values)
      list.push_back(value == kNoValue ? Tensor() : (*this)[value]);
    return operand.kind == Operand::Kind::kTensors ? Value(std::move(list)) : Value(list[0]);
  }
  void keep(const Operand& operand, const Value& result) {
    for (size_t i = 0; i < operand.values.size(); i++) {
      if (operand.values[i] == kNoValue) continue;
      (*this)[operand.values[i]] =
          operand.kind == Operand::Kind::kTensors ? result.tensors().at(i) : result.tensor();
    }
  }
  void forget(size_t number) { tensors_[number] = {}; }

 private:
  TensorList tensors_;
};

// For each value the last node that reads it, or makes it; past the end what is returned.
std::vector<size_t> last_uses(const Program& program) {
  std::vector<size_t> last(program.values.size(), 0);
  for (size_t i = 0; i < program.nodes.size(); i++) {
    const auto here = [&](size_t value) { last[value] = i; };
    each_number(program.nodes[i].arguments, here);
    each_number(program.nodes[i].results, here);
  }
  for (const int output : program.outputs)
    if (output != kNoValue) last[static_cast<size_t>(output)] = program.nodes.size();
  return last;
}

void run_node(const Node& node, Frame& frame) {
  Stack stack;
  for (const Operand& operand : node.arguments) stack.push_back(frame.argument(operand));
  const bool before = thread_modes.grad_enabled;
  struct Restore {
    bool before;
    ~Restore() { thread_modes.grad_enabled = before; }
  } const restore{before};
  thread_modes.grad_enabled = before && node.grad_enabled;
  node.op->call(stack);
  for (size_t i = 0; i < node.results.size(); i++) frame.keep(node.results[i], stack[i]);
}

}  // namespace

TensorList Program::run(TensorSpan given) const {
  TD_CHECK(given.size() == inputs.size(), "the program takes {} inputs but got {}", inputs.size(),
           given.size());
  Frame frame(values.size());
  for (const Constant& constant : constants) frame[constant.value] = constant.tensor;
  for (size_t i = 0; i < given.size(); i++) frame[inputs[i]] = given[i];
  const std::vector<size_t> last = last_uses(*this);
  for (size_t i = 0; i < nodes.size(); i++) {
    run_node(nodes[i], frame);
    const auto forget = [&](size_t value) {
      if (last[value] == i) frame.forget(value);
    };
    each_number(nodes[i].arguments, forget);
    each_number(nodes[i].results, forget);
  }
  TensorList results;
  for (const int output : outputs) results.push_back(output == kNoValue ? Tensor() : frame[output]);
  return results;
}

// --- dead code ---

namespace {

bool is_random(const Operator& op) {
  return op.schema().find("generator") >= 0 || (op.record() && op.record()->draws()) ||
         overloads::tags_of(op.record()).find("nondeterministic_seeded") != std::string_view::npos;
}

// Goes through the calls from the end; knows which values, and which memory, are read later.
class Liveness {
 public:
  explicit Liveness(const Program& program)
      : program_(program), values_(program.values.size()), memory_(program.values.size()) {
    const auto add = [&](int value) {
      if (value != kNoValue) read(static_cast<size_t>(value));
    };
    std::for_each(program.inputs.begin(), program.inputs.end(), add);
    std::for_each(program.outputs.begin(), program.outputs.end(), add);
    for (const Constant& constant : program.constants) add(constant.value);
  }

  // Whether the call is needed; then what it reads is.
  bool visit(const Node& node) {
    const auto& arguments = node.op->schema().arguments;
    bool needed = node.results.empty() || is_random(*node.op);
    each_number(node.results, [&](size_t value) { needed |= values_[value]; });
    for (size_t i = 0; i < node.arguments.size(); i++) {
      if (!arguments[i].alias.written) continue;
      each_number({node.arguments[i]}, [&](size_t value) { needed |= memory_[memory_of(value)]; });
    }
    if (needed) each_number(node.arguments, [&](size_t value) { read(value); });
    return needed;
  }

 private:
  size_t memory_of(size_t value) const {
    return static_cast<size_t>(program_.values[value].memory);
  }
  void read(size_t value) {
    values_[value] = true;
    memory_[memory_of(value)] = true;
  }

  const Program& program_;
  std::vector<bool> values_, memory_;
};

}  // namespace

void Program::remove_dead_code() {
  Liveness liveness(*this);
  std::vector<Node> needed;
  for (size_t i = nodes.size(); i-- > 0;)
    if (liveness.visit(nodes[i])) needed.push_back(std::move(nodes[i]));
  std::reverse(needed.begin(), needed.end());
  nodes = std::move(needed);
  std::vector<bool> read(values.size());
  for (const Node& node : nodes) each_number(node.arguments, [&](size_t v) { read[v] = true; });
  for (const int output : outputs)
    if (output != kNoValue) read[static_cast<size_t>(output)] = true;
  std::erase_if(constants, [&](const Constant& c) { return !read[static_cast<size_t>(c.value)]; });
}

}  // namespace taeda::jit
