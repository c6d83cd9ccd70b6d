#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "io/json.h"
#include "taeda/taeda.h"

namespace taeda {
namespace {

class Files : public ::testing::Test {
 protected:
  Files() {
    char name[] = "/tmp/taeda_io_XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~Files() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return folder_ + "/" + name; }
  // A file with this header and this many zero bytes of data.
  std::string write(const std::string& header, size_t data) const {
    const std::string file = path("written");
    const uint64_t length = header.size();
    std::ofstream out(file, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&length), sizeof(length));
    out << header << std::string(data, '\0');
    return file;
  }

 private:
  std::string folder_;
};

TEST_F(Files, TensorsOfAllDtypesReturn) {
  nn::NamedTensors tensors;
  for (int i = 0; i < kNumDTypes; i++) {
    const DType dtype = static_cast<DType>(i);
    if (dtype_info(dtype).safetensors.empty()) continue;
    const Tensor x = arange(Scalar(int64_t{6}), TensorOptions()).reshape({2, 3});
    tensors.emplace_back("x \"" + std::string(to_text(dtype)) + "\"\n\xC3\xA9",
                         to_dtype(x, dtype).t());
  }
  tensors.emplace_back("empty", empty({0, 3}));
  tensors.emplace_back("number", Tensor(Scalar(2.5)));
  save(tensors, path("all"));
  nn::NamedTensors back = load_tensors(path("all"));
  ASSERT_EQ(back.size(), tensors.size());
  for (const auto& [name, x] : tensors) {
    const auto found =
        std::find_if(back.begin(), back.end(), [&n = name](const auto& e) { return e.first == n; });
    ASSERT_NE(found, back.end()) << name;
    EXPECT_EQ(found->second.dtype(), x.dtype()) << name;
    EXPECT_EQ(found->second.sizes(), x.sizes()) << name;
    EXPECT_TRUE((found->second == x).all().item<bool>()) << name;
  }
  Tensor one;
  save(Tensor(ones({2})), path("one"));
  load(one, path("one"));
  EXPECT_EQ(one.sum().item<float>(), 2);
  EXPECT_THROW(load(one, path("all")), Error);
}

TEST_F(Files, ModulesReturn) {
  manual_seed(0);
  const nn::Sequential model{nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 2)};
  nn::Sequential other{nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 2)};
  const Tensor x = ones({1, 3});
  EXPECT_FALSE((model(x) == other(x)).all().item<bool>());
  save(model, path("model"));
  load(other, path("model"));
  EXPECT_TRUE((model(x) == other(x)).all().item<bool>());
  nn::Linear linear(3, 4);
  EXPECT_THROW(load(linear, path("model")), Error);
}

TEST_F(Files, AFailedSaveLeavesTheOldFile) {
  save(Tensor(ones({2})), path("x"));
  EXPECT_THROW(save(nn::NamedTensors{{"a", ones({1})}, {"a", ones({1})}}, path("x")), Error);
  EXPECT_THROW(save(Tensor(ones({1})), path("no/such/folder")), Error);
  Tensor x;
  load(x, path("x"));
  EXPECT_EQ(x.numel(), 2);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path("")), {}), 1);
}

TEST_F(Files, FilesThatLieAreRefused) {
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_EQ(load_tensors(write(good, 8)).size(), 1u);
  EXPECT_THROW(load_tensors(path("missing")), Error);
  for (size_t bytes : {0, 4, 7, 9}) EXPECT_THROW(load_tensors(write(good, bytes)), Error);
  for (size_t end = 0; end < good.size(); end++)
    EXPECT_THROW(load_tensors(write(good.substr(0, end), 8)), Error) << end;
  const char* const lies[] = {
      R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[4611686018427387905,4],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,16]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})",
      R"({"a":{"dtype":"F32","shape":[2]}})",
      R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      R"([])",
  };
  for (const char* lie : lies) EXPECT_THROW(load_tensors(write(lie, 8)), Error) << lie;
  std::ofstream(path("short")) << "abc";
  EXPECT_THROW(load_tensors(path("short")), Error);
  const uint64_t huge = ~uint64_t{0};
  std::ofstream(path("huge"), std::ios::binary).write(reinterpret_cast<const char*>(&huge), 8);
  EXPECT_THROW(load_tensors(path("huge")), Error);
}

TEST(Json, StringsWithEscapes) {
  io::JsonReader reader(R"( "a\"\\\/\n\u00e9\u20ac\ud83d\ude00" )");
  EXPECT_EQ(reader.string(), "a\"\\/\n\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  reader.end();
  for (const char* bad : {"\"", "\"\\x\"", "\"\\ud83d\"", "\"\\u12\"", "\"\n\"", "x"})
    EXPECT_THROW(io::JsonReader(bad).string(), Error) << bad;
  EXPECT_EQ(io::json_string("a\"\\\n"), "\"a\\\"\\\\\\u000a\"");
}

}  // namespace
}  // namespace taeda
