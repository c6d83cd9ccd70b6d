#include "io/json.h"

#include <limits>

#include "taeda/error.h"

namespace taeda::io {

bool is_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  for (size_t i = 0; i < text.size();) {
    const unsigned char lead = byte(i++);
    if (lead < 0x80) continue;
    const size_t more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || text.size() - i < more) return false;
    const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (byte(i) < low || byte(i) > high) return false;
    for (size_t j = 1; j < more; j++)
      if ((byte(i + j) & 0xC0) != 0x80) return false;
    i += more;
  }
  return true;
}

void JsonReader::fail_at() const {
  fail(ErrorKind::kRuntime, "safetensors: the header is not what was expected at byte {}",
       static_cast<int64_t>(at_));
}

void JsonReader::skip_space() {
  while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string::npos)
    at_++;
}

char JsonReader::peek() {
  skip_space();
  if (at_ == text_.size()) fail_at();
  return text_[at_];
}

void JsonReader::expect(char c) {
  if (peek() != c) fail_at();
  at_++;
}

bool JsonReader::next(bool& first, char open, char close) {
  if (first) expect(open);
  if (peek() == close) {
    at_++;
    return false;
  }
  if (!first) expect(',');
  first = false;
  return true;
}

bool JsonReader::member(bool& first, std::string& name) {
  if (!next(first, '{', '}')) return false;
  name = string();
  expect(':');
  return true;
}

bool JsonReader::element(bool& first) { return next(first, '[', ']'); }

uint32_t JsonReader::hex4() {
  if (text_.size() - at_ < 4) fail_at();
  uint32_t value = 0;
  for (const char c : text_.substr(at_, 4)) {
    const size_t digit =
        std::string_view("0123456789abcdef").find(c >= 'A' && c <= 'F' ? c + 32 : c);
    if (digit == std::string::npos) fail_at();
    value = value * 16 + static_cast<uint32_t>(digit);
  }
  at_ += 4;
  return value;
}

// After "\u": one code point as UTF-8, of two halves where it needs them.
void JsonReader::append_code_point(std::string& out) {
  uint32_t code = hex4();
  if (code >= 0xD800 && code < 0xDC00) {
    if (text_.substr(at_, 2) != "\\u") fail_at();
    at_ += 2;
    const uint32_t low = hex4();
    if (low < 0xDC00 || low > 0xDFFF) fail_at();
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  } else if (code >= 0xDC00 && code < 0xE000) {
    fail_at();  // the second half without a first
  }
  const auto byte = [&](uint32_t bits) { out += static_cast<char>(bits); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

std::string JsonReader::string() {
  expect('"');
  std::string out;
  while (true) {
    if (at_ == text_.size()) fail_at();
    const char c = text_[at_++];
    if (c == '"') {
      if (!is_utf8(out)) fail_at();
      return out;
    }
    if (static_cast<unsigned char>(c) < 0x20) fail_at();
    if (c != '\\') {
      out += c;
      continue;
    }
    if (at_ == text_.size()) fail_at();
    const char escaped = text_[at_++];
    constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
    const size_t i = kNames.find(escaped);
    if (i != std::string::npos)
      out += kValues[i];
    else if (escaped == 'u')
      append_code_point(out);
    else
      fail_at();
  }
}

int64_t JsonReader::whole_number() {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  char c = peek();
  if (c < '0' || c > '9') fail_at();
  if (c == '0' && at_ + 1 < text_.size() && text_[at_ + 1] >= '0' && text_[at_ + 1] <= '9')
    fail_at();
  int64_t value = 0;
  while (at_ < text_.size() && (c = text_[at_]) >= '0' && c <= '9') {
    const int64_t digit = c - '0';
    if (value > (kMax - digit) / 10) fail_at();
    value = value * 10 + digit;
    at_++;
  }
  return value;
}

void JsonReader::end() {
  skip_space();
  if (at_ != text_.size()) fail_at();
}

std::string json_string(std::string_view text) {
  TD_CHECK_VALUE(is_utf8(text), "expected a name in UTF-8");
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr char kDigits[] = "0123456789abcdef";
      out += "\\u00";
      out += kDigits[c >> 4];
      out += kDigits[c & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace taeda::io
