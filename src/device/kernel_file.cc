#include "device/kernel_file.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "device/packed_part.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

constexpr std::string_view kMagic = "TDKERN2\n";
constexpr char kName = '\x01', kNumber = '\x10';
constexpr int kKinds = 15;

uint32_t word(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Reads a stream from a place on; what lies beyond its end is 0.
class Reader {
 public:
  Reader(std::string_view bytes, size_t at) : bytes_(bytes), at_(at) {}
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; at_ < bytes_.size() && shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= uint64_t{byte & 127u} << shift;
      if (byte < 128) break;
    }
    return value;
  }
  int64_t difference() {
    const uint64_t value = varint();
    const auto half = static_cast<int64_t>(value >> 1);
    return value & 1 ? -half - 1 : half;
  }

 private:
  std::string_view bytes_;
  size_t at_;
};

// The numbers of registers of one kind, the one that was named last at the end.
class Recent {
 public:
  // The next one: how far back it is, or 0 and the difference from the newest one's successor.
  int64_t next(Reader& reader) {
    const uint64_t back = reader.varint();
    int64_t found = 0;
    if (back == 0) {
      found = newest_ = newest_ + 1 + reader.difference();
    } else {
      TD_CHECK(back <= numbers_.size(), "the file of kernels is damaged: no register {} back",
               back);
      const auto at = numbers_.end() - static_cast<std::ptrdiff_t>(back);
      found = *at;
      numbers_.erase(at);
    }
    numbers_.push_back(found);
    return found;
  }

 private:
  std::vector<int64_t> numbers_;
  int64_t newest_ = 0;
};

struct Place {
  size_t id = 0, number = 0, lines = 0;
  int prelude = -1;
};

}  // namespace

struct KernelFile::Family {
  size_t offset, packed_bytes, raw_bytes;
  std::string types;  // " f32 f16 bf16 "
  std::string raw;    // empty until it is used
  std::vector<std::string_view> templates;
  std::unordered_map<std::string, Place> places;
  std::string_view ids, numbers;

  void index();
  void append(std::string& text, const std::string& name, const Place& place) const;
};

void KernelFile::Family::index() {
  const std::string_view all = raw;
  constexpr size_t kHead = 5 * sizeof(uint32_t);
  const size_t templates_bytes = word(all, 8), index_bytes = word(all, 12),
               ids_bytes = word(all, 16);
  std::string_view text = all.substr(kHead, templates_bytes);
  templates.reserve(word(all, 0));
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    templates.push_back(text.substr(0, end));
  std::istringstream rows(std::string(all.substr(kHead + templates_bytes, index_bytes)));
  std::string name;
  Place place;
  while (rows >> name >> place.id >> place.number >> place.lines >> place.prelude)
    places.emplace(name, place);
  ids = all.substr(kHead + templates_bytes + index_bytes, ids_bytes);
  numbers = all.substr(kHead + templates_bytes + index_bytes + ids_bytes);
}

void KernelFile::Family::append(std::string& text, const std::string& name,
                                const Place& place) const {
  Reader id(ids, place.id), number(numbers, place.number);
  Recent recent[kKinds];
  for (size_t i = 0; i < place.lines; i++) {
    const size_t found = id.varint();
    TD_CHECK(found < templates.size(), "the file of kernels is damaged at '{}'", name);
    for (const char c : templates[found]) {
      if (c == kName)
        text += name;
      else if (c >= kNumber && c < kNumber + kKinds)
        text += std::to_string(recent[c - kNumber].next(number));
      else
        text += c;
    }
    text += '\n';
  }
}

KernelFile::KernelFile(std::string path) : path_(std::move(path)) {
  std::ifstream file(path_, std::ios::binary);
  char magic[8] = {}, count[4] = {};
  file.read(magic, sizeof magic).read(count, sizeof count);
  TD_CHECK(file && std::string_view(magic, sizeof magic) == kMagic,
           "{}: no file of kernels, or one of another version", path_);
  const size_t families = word({count, sizeof count}, 0);
  constexpr size_t kRow = 40;
  size_t offset = sizeof magic + sizeof count + families * kRow;
  for (size_t i = 0; i < families; i++) {
    char row[kRow + 1] = {};
    TD_CHECK(file.read(row, kRow), "{}: the file of kernels is damaged", path_);
    auto family = std::make_unique<Family>();
    family->offset = offset;
    family->packed_bytes = word(row, 0);
    family->raw_bytes = word(row, 4);
    family->types = std::string(" ").append(row + 8).append(" ");
    offset += family->packed_bytes;
    families_.push_back(std::move(family));
  }
}
KernelFile::~KernelFile() = default;

KernelFile::Family& KernelFile::load(size_t i) {
  Family& family = *families_[i];
  if (!family.raw.empty()) return family;
  std::optional<std::string> raw =
      unpacked(path_, family.offset, family.packed_bytes, family.raw_bytes);
  TD_CHECK(raw && raw->size() >= 20, "{}: the file of kernels is damaged", path_);
  family.raw = *std::move(raw);
  family.index();
  return family;
}

std::string KernelFile::image(const std::string& kernel) {
  std::string_view type = kernel;
  for (const std::string_view form : {"_any", "_list"})
    if (type.ends_with(form)) type.remove_suffix(form.size());
  type.remove_prefix(type.rfind('_') + 1);
  const std::string word = std::string(" ").append(type).append(" ");
  for (size_t i = 0; i < families_.size(); i++) {
    if (families_[i]->types.find(word) == std::string::npos) continue;
    const Family& family = load(i);
    const auto found = family.places.find(kernel);
    if (found == family.places.end()) return {};
    std::string text;
    const std::string prelude = "#" + std::to_string(found->second.prelude);
    if (const auto head = family.places.find(prelude); head != family.places.end())
      family.append(text, prelude, head->second);
    family.append(text, kernel, found->second);
    return text;
  }
  return {};
}

// A kernel's line names its unit; headers have a & before their names.
std::optional<KernelText> KernelFile::text(const std::string& kernel) {
  for (size_t i = 0; i < families_.size(); i++) {
    if (families_[i]->types != " text ") continue;
    const Family& family = load(i);
    const auto content = [&](const std::string& name, const Place& place) {
      std::string lines;
      family.append(lines, name, place);
      return lines;
    };
    const auto found = family.places.find(kernel);
    if (found == family.places.end()) return std::nullopt;
    KernelText unit;
    unit.name = content(kernel, found->second);
    unit.name.pop_back();
    const auto text = family.places.find(unit.name);
    TD_CHECK(text != family.places.end(), "the file of kernels is damaged at '{}'", kernel);
    unit.text = content(unit.name, text->second);
    for (const auto& [name, place] : family.places)
      if (name.starts_with('&')) unit.headers.emplace_back(name.substr(1), content(name, place));
    std::sort(unit.headers.begin(), unit.headers.end());
    return unit;
  }
  return std::nullopt;
}

std::vector<std::string> KernelFile::names() {
  std::vector<std::string> all;
  for (size_t i = 0; i < families_.size(); i++)
    for (const auto& [name, place] : load(i).places)
      if (name.find_first_of("#&.") == std::string::npos) all.push_back(name);
  return all;
}

}  // namespace taeda::cuda
