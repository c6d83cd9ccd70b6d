// A reader of the little JSON that file headers need: objects, arrays, strings and whole numbers.
//
// The caller walks the text (`member`, `element`) and takes what it expects; anything else, and any
// text that is no JSON, is a RuntimeError. Nesting is as deep as the caller's code.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace taeda::io {

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  // Whether another member follows in an object, whose name is then in `name`. `first` is true for
  // the first call, which enters the object; the last call leaves it.
  bool member(bool& first, std::string& name);
  // Likewise for an array.
  bool element(bool& first);
  std::string string();
  int64_t whole_number();
  // Only white space is left.
  void end();

 private:
  [[noreturn]] void fail_at() const;
  void skip_space();
  char peek();
  void expect(char c);
  bool next(bool& first, char open, char close);
  void append_code_point(std::string& out);
  uint32_t hex4();

  std::string_view text_;
  size_t at_ = 0;
};

// Whether the text is UTF-8: no byte out of place, no longer form than needed, no surrogates.
bool is_utf8(std::string_view text);
// A string with quotes and escapes; ValueError unless it is UTF-8.
std::string json_string(std::string_view text);

}  // namespace taeda::io
