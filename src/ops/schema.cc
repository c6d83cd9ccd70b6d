// PyTorch's schema language: reading and writing it, and the values of its defaults.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>

#include "ops/modes.h"

namespace taeda {
namespace {

struct BaseType {
  const char* name;
  ValueType type;
};
// The first name of a type is the one that is written.
constexpr BaseType kBaseTypes[] = {
    {"Tensor", ValueType::kTensor},
    {"Scalar", ValueType::kScalar},
    {"int", ValueType::kInt},
    {"SymInt", ValueType::kInt},
    {"float", ValueType::kFloat},
    {"bool", ValueType::kBool},
    {"str", ValueType::kString},
    {"ScalarType", ValueType::kDType},
    {"Layout", ValueType::kLayout},
    {"Device", ValueType::kDevice},
    {"MemoryFormat", ValueType::kMemoryFormat},
    {"Generator", ValueType::kGenerator},
};

// Types of the operator table (ops/), and what each is in PyTorch.
constexpr std::pair<std::string_view, std::string_view> kTableTypes[] = {
    {"dim", "int"},          {"dims", "int"},      {"word", "str"},
    {"dtype", "ScalarType"}, {"device", "Device"}, {"memory_format", "MemoryFormat"},
};
constexpr std::string_view kTableOptions =
    "options(*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor";

class Parser {
 public:
  explicit Parser(std::string_view text, bool of_table = false)
      : text_(text), of_table_(of_table) {}

  Schema schema() {
    Schema schema;
    schema.name = word("the operator's name");
    while (take("::")) schema.name += "::" + word("a name");
    if (take(".")) schema.overload = word("the overload's name");
    if (schema.overload == "default") schema.overload.clear();
    expect("(");
    bool keyword_only = false;
    while (!take(")")) {
      if (take("*")) {
        if (keyword_only) fail("a second '*'");
        keyword_only = true;
      } else if (of_table_ && take("options options")) {
        for (SchemaArgument& argument : parse_schema(kTableOptions).arguments)
          schema.arguments.push_back(std::move(argument));
      } else {
        schema.arguments.push_back(argument(keyword_only));
        if (schema.find(schema.arguments.back().name) + 1 !=
            static_cast<int>(schema.arguments.size()))
          fail("an argument's name appears twice");
      }
      if (!take(",") && !peek(")")) fail("expected ',' or ')'");
    }
    expect("->");
    if (take("(")) {
      while (!take(")")) {
        schema.results.push_back(result());
        if (!take(",") && !peek(")")) fail("expected ',' or ')'");
      }
    } else {
      schema.results.push_back(result());
    }
    skip();
    if (at_ != text_.size()) fail("expected nothing more");
    return schema;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    taeda::fail(ErrorKind::kRuntime, "the schema '{}' cannot be read at '{}': {}", text_,
                text_.substr(std::min(at_, text_.size())), what);
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) at_++;
  }
  bool peek(std::string_view token) {
    skip();
    return text_.substr(at_, token.size()) == token;
  }
  bool take(std::string_view token) {
    if (!peek(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) fail("expected '" + std::string(token) + "'");
  }
  static bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  std::string word(std::string_view what) {
    skip();
    const size_t start = at_;
    while (at_ < text_.size() && is_word(text_[at_])) at_++;
    if (at_ == start) fail("expected " + std::string(what));
    return std::string(text_.substr(start, at_ - start));
  }
  int64_t number() {
    const std::string digits = word("a number");
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) fail("expected a number");
    return value;
  }

  void type(SchemaType& type, SchemaAlias& alias) {
    std::string name = word("a type");
    if (of_table_) {
      if (name == "dims") type = {.list = true, .size = 1};
      for (const auto& [ours, public_name] : kTableTypes)
        if (name == ours) name = public_name;
    }
    bool known = false;
    for (const BaseType& base : kBaseTypes) {
      if (name != base.name) continue;
      type.base = base.type;
      known = true;
    }
    if (!known) fail("'" + name + "' is no type of an operator's argument");
    if (peek("(")) alias = this->alias();
    const bool optional = take("?");
    if (!take("[")) {
      type.optional = optional;
      return;
    }
    type.list = true;
    type.optional_elements = optional;
    if (!peek("]")) type.size = number();
    expect("]");
    type.optional = take("?");
  }
  SchemaAlias alias() {
    SchemaAlias found;
    expect("(");
    found.set = word("an alias set");
    while (take("|")) found.set += "|" + word("an alias set");
    if (take("!")) found.written = true;
    if (take("->")) {
      if (take("*"))
        found.wildcard = true;
      else
        word("an alias set");
    }
    expect(")");
    return found;
  }

  SchemaArgument argument(bool keyword_only) {
    SchemaArgument argument;
    type(argument.type, argument.alias);
    argument.keyword_only = keyword_only;
    argument.name = word("the argument's name");
    if (take("=")) {
      skip();
      const size_t start = at_;
      argument.default_value = value(argument.type);
      argument.default_text = text_.substr(start, at_ - start);
      if (of_table_) requote(argument);
      argument.has_default = true;
    }
    return argument;
  }
  SchemaArgument result() {
    SchemaArgument result;
    type(result.type, result.alias);
    skip();
    if (at_ < text_.size() && is_word(text_[at_])) result.name = word("a name");
    return result;
  }

  // --- defaults ---

  // Python's text of a default as PyTorch writes it.
  static void requote(SchemaArgument& argument) {
    std::string& text = argument.default_text;
    if (argument.type.base == ValueType::kMemoryFormat)
      std::erase(text, '\'');
    else
      std::replace(text.begin(), text.end(), '\'', '"');
  }
  Value value(const SchemaType& type) {
    if (take("None")) return {};
    if (!type.list) return element(type);
    if (!take("[")) {  // one for all
      const Value one = element(type);
      return list(type, Stack(static_cast<size_t>(std::max<int64_t>(type.size, 1)), one));
    }
    Stack elements;
    while (!take("]")) {
      elements.push_back(element(type));
      if (!take(",") && !peek("]")) fail("expected ',' or ']'");
    }
    return list(type, elements);
  }
  Value list(const SchemaType& type, const Stack& elements) {
    switch (type.base) {
      case ValueType::kInt: {
        Value::Ints ints;
        for (const Value& v : elements) ints.push_back(v.integer());
        return ints;
      }
      case ValueType::kFloat: {
        Value::Floats floats;
        for (const Value& v : elements) floats.push_back(v.real());
        return floats;
      }
      case ValueType::kBool: {
        Value::Bools bools;
        for (const Value& v : elements) bools.push_back(v.boolean());
        return bools;
      }
      case ValueType::kTensor:
        if (elements.empty()) return TensorList();
        [[fallthrough]];
      default:
        fail("a list of this type has no default");
    }
  }
  Value element(const SchemaType& type) {
    if (take("True")) return true;
    if (take("False")) return false;
    skip();
    const char first = at_ < text_.size() ? text_[at_] : '\0';
    if (first == '"' || first == '\'') {
      const size_t end = text_.find(first, at_ + 1);
      if (end == std::string_view::npos) fail("the string does not end");
      const std::string inside(text_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
      if (type.base == ValueType::kMemoryFormat) return memory_format(inside);
      if (type.base == ValueType::kDevice) return Device::parse(inside);
      return inside;
    }
    if (type.base == ValueType::kMemoryFormat) return memory_format(word("a memory format"));
    if (type.base == ValueType::kDType && std::isalpha(static_cast<unsigned char>(first)))
      return dtype(word("a dtype"));
    if (type.base == ValueType::kLayout) {
      word("a layout");
      return Layout::kStrided;
    }
    return number(type);
  }
  Value number(const SchemaType& type) {
    double real = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), real);
    if (error != std::errc()) fail("expected a value");
    const std::string_view digits(begin, static_cast<size_t>(end - begin));
    at_ += digits.size();
    const bool whole = digits.find_first_of(".eEni") == std::string_view::npos;
    if (type.base == ValueType::kFloat || !whole) return real;
    int64_t integer = 0;
    std::from_chars(begin, end, integer);
    return integer;
  }
  Value dtype(std::string_view name) {
    for (int i = 0; i < kNumDTypes; i++)
      if (name == kDTypes[i].name || name == kDTypes[i].other_name) return static_cast<DType>(i);
    fail("no dtype has this name");
  }
  Value memory_format(std::string_view name) {
    if (name == "contiguous" || name == "contiguous_format") return MemoryFormat::kContiguous;
    if (name == "preserve" || name == "preserve_format") return MemoryFormat::kPreserve;
    if (name == "channels_last") return MemoryFormat::kChannelsLast;
    if (name == "channels_last_3d") return MemoryFormat::kChannelsLast3d;
    fail("no memory format has this name");
  }

  const std::string_view text_;
  const bool of_table_;
  size_t at_ = 0;
};

// A float as PyTorch's schemas show it: 17 digits, `2.` for a whole number.
std::string float_text(double value) {
  char digits[32];
  std::snprintf(digits, sizeof(digits), "%.17g", value);
  const std::string text = digits;
  return text.find_first_of(".en") == std::string::npos ? text + "." : text;
}

std::string default_text_of(const SchemaArgument& argument) {
  return argument.default_value.holds<double>() ? float_text(argument.default_value.real())
                                                : argument.default_text;
}

// `Tensor(a!)?[]`: the letters stand behind the base type.
std::string text_of(const SchemaType& type, const SchemaAlias& alias) {
  std::string text = type.text();
  if (alias.set.empty()) return text;
  const std::string letters =
      "(" + alias.set + (alias.written ? "!" : "") + (alias.wildcard ? " -> *" : "") + ")";
  const size_t base = text.find_first_of("?[");
  return text.insert(std::min(base, text.size()), letters);
}

}  // namespace

std::string SchemaType::text() const {
  std::string text;
  for (const BaseType& known : kBaseTypes) {
    if (known.type != base) continue;
    text = known.name;
    break;
  }
  if (!list) return text + (optional ? "?" : "");
  if (optional_elements) text += "?";
  text += "[" + (size ? std::to_string(size) : "") + "]";
  return text + (optional ? "?" : "");
}

bool Schema::is_mutable() const {
  for (const SchemaArgument& argument : arguments)
    if (argument.alias.written) return true;
  return false;
}

int Schema::find(std::string_view argument) const {
  for (size_t i = 0; i < arguments.size(); i++)
    if (arguments[i].name == argument) return static_cast<int>(i);
  return -1;
}

std::string Schema::text() const {
  std::string text = name + (overload.empty() ? "" : "." + overload) + "(";
  bool keyword_only = false;
  for (const SchemaArgument& argument : arguments) {
    if (&argument != &arguments.front()) text += ", ";
    if (argument.keyword_only && !std::exchange(keyword_only, true)) text += "*, ";
    text += text_of(argument.type, argument.alias) + " " + argument.name;
    if (argument.has_default) text += "=" + default_text_of(argument);
  }
  text += ") -> ";
  const bool brackets = results.size() != 1;
  if (brackets) text += "(";
  for (const SchemaArgument& result : results) {
    if (&result != &results.front()) text += ", ";
    text += text_of(result.type, result.alias);
    if (!result.name.empty()) text += " " + result.name;
  }
  return text + (brackets ? ")" : "");
}

Schema parse_schema(std::string_view text) { return Parser(text).schema(); }
Schema parse_table_schema(std::string_view text) { return Parser(text, true).schema(); }

}  // namespace taeda
