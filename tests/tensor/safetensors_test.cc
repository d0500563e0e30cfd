#include "tensor/safetensors.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scratch.h"
#include "tensor/made.h"

namespace opguard {
namespace {

std::string file_of(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
  return bytes + header + data;
}

class Safetensors : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = make_scratch();
    path_ = (dir_ / "f.safetensors").string();
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  // "" or the error.
  std::string open(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    std::string error;
    if (file_.open(path_, error)) return "";
    EXPECT_TRUE(file_.tensors().empty());
    EXPECT_EQ(error.find('\n'), std::string::npos);
    return error.empty() ? "no error" : error;
  }

  std::filesystem::path dir_;
  std::string path_;
  SafetensorsFile file_;
};

TEST_F(Safetensors, WhatIsWrittenIsRead) {
  Made f("float32", {2, 3}, random_floats(6), "out/out0"),
      i("int64", {2}, std::vector<int64_t>{-1, 5}, "in/arg0"),
      scalar("bfloat16", {}, std::vector<uint16_t>{0x3f80}, "in/\"quoted\"\n\x01"),
      none("float16", {0, 4}, std::vector<uint16_t>{}, "none"),
      c64("complex64", {1}, std::vector<float>{1, 2}, "c64"),
      c128("complex128", {3}, std::vector<double>{1, 2, 3, 4, 5, 6}, "c128"),
      packed("quint4x2", {2, 2}, std::vector<uint8_t>{1, 2, 3, 4}, "packed");
  const std::vector<Tensor> all = {f.tensor,   i.tensor,    scalar.tensor, none.tensor,
                                   c64.tensor, c128.tensor, packed.tensor};
  std::string error;
  ASSERT_TRUE(write_safetensors(path_, all, {{"boundary", "a\\b:é"}}, error)) << error;
  ASSERT_TRUE(file_.open(path_, error)) << error;
  ASSERT_EQ(file_.tensors().size(), all.size());
  EXPECT_EQ(file_.metadata().at("boundary"), "a\\b:é");
  EXPECT_EQ(file_.metadata().at("dtype:c128"), "complex128");
  for (const Tensor& tensor : all) {
    const Tensor* found = file_.find(tensor.name);
    ASSERT_TRUE(found) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.dtype);
    EXPECT_EQ(found->shape, tensor.shape);
    EXPECT_EQ(std::memcmp(found->data, tensor.data, tensor.size_bytes()), 0);
    // Aligned to its element, or to nothing where it is stored as bytes.
    if (tensor.dtype->stored[0]) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(found->data) % tensor.dtype->size_bytes, 0u);
    }
  }
  EXPECT_EQ(file_.find("out0"), file_.find("out/out0"));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".incomplete"));
}

TEST_F(Safetensors, ANameOfTwoSlotsIsNoName) {
  Made x("uint8", {1}, std::vector<uint8_t>{1}, "in/self"),
      y("uint8", {1}, std::vector<uint8_t>{2}, "written/self");
  std::string error;
  ASSERT_TRUE(write_safetensors(path_, {x.tensor, y.tensor}, {}, error));
  ASSERT_TRUE(file_.open(path_, error));
  EXPECT_EQ(file_.find("self"), nullptr);
  EXPECT_EQ(file_.find("written/self")->data[0], 2);
}

TEST_F(Safetensors, WhatCannotBeWrittenLeavesNothing) {
  Made x("uint8", {1}, std::vector<uint8_t>{1});
  std::string error, path = (dir_ / "missing" / "f").string();
  EXPECT_FALSE(write_safetensors(path, {x.tensor}, {}, error));
  EXPECT_NE(error.find(path), std::string::npos);
  std::vector<uint8_t> large(1 << 20);
  Made y("uint8", {1 << 20}, large);
  if (std::filesystem::exists("/dev/full")) {
    std::filesystem::create_symlink("/dev/full", dir_ / "full.incomplete");
    error.clear();
    EXPECT_FALSE(write_safetensors((dir_ / "full").string(), {y.tensor}, {}, error));
    EXPECT_NE(error.find("No space"), std::string::npos) << error;
    EXPECT_FALSE(std::filesystem::exists(dir_ / "full"));
  }
}

constexpr const char* kGood = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";

TEST_F(Safetensors, OthersFilesAreRead) {
  EXPECT_EQ(open(file_of(kGood, "xy")), "");
  EXPECT_EQ(open(file_of(std::string(kGood) + "   ", "xy")), "");
  EXPECT_EQ(open(file_of("{}", "")), "");
  EXPECT_EQ(open(file_of(
                R"( { "a" : { "shape" : [ ] , "data_offsets" : [ 0 , 4 ] , "dtype" : "F32" } } )",
                "1234")),
            "");
  EXPECT_EQ(open(file_of(
                R"({"\u0061\ud83d\ude00":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "xy")),
            "");
  EXPECT_EQ(file_.tensors()[0].name, "a\xf0\x9f\x98\x80");
}

TEST_F(Safetensors, HostileFilesAreRefusedByOneLine) {
  auto tensor = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":")" + dtype + R"(","shape":[)" + shape + R"(],"data_offsets":[)" +
           offsets + "]}}";
  };
  std::string error;
  EXPECT_NE(open(""), "");
  EXPECT_NE(open("1234567"), "");
  EXPECT_NE(open(std::string(8, '\xff') + "{}"), "");            // header beyond the file
  EXPECT_NE(open(std::string("\x03\0\0\0\0\0\0\0{}", 10)), "");  // by one byte
  EXPECT_NE(open(file_of("", "")), "");
  EXPECT_NE(open(file_of(kGood, "x")), "");    // data cut
  EXPECT_NE(open(file_of(kGood, "xyz")), "");  // data left over
  EXPECT_NE(open(file_of(std::string(kGood) + "x", "xy")), "");
  EXPECT_NE(open(file_of(tensor("U9", "2", "0,2"), "xy")), "");
  EXPECT_NE(open(file_of(tensor("F32", "2", "0,2"), "xy")), "");
  EXPECT_NE(open(file_of(tensor("U8", "3", "0,2"), "xy")), "");
  EXPECT_NE(open(file_of(tensor("U8", "2", "2,0"), "xy")), "");
  EXPECT_NE(open(file_of(tensor("U8", "2", "1,3"), "xyz")), "");  // a hole
  EXPECT_NE(open(file_of(tensor("U8", "-2", "0,2"), "xy")), "");
  EXPECT_NE(open(file_of(tensor("U8", "2.0", "0,2"), "xy")), "");
  EXPECT_NE(open(file_of(tensor("U8", "99999999999999999999", "0,2"), "xy")), "");
  // 2^32 * 2^32 * 4 elements are none, mod 2^64.
  EXPECT_NE(open(file_of(tensor("F32", "4294967296,4294967296", "0,0"), "")), "");
  EXPECT_NE(open(file_of(tensor("U8", "2", "0,2,2"), "xy")), "");
  std::string many = "1";
  for (int i = 0; i < 64; ++i) many += ",1";
  EXPECT_NE(open(file_of(tensor("U8", many, "0,1"), "x")), "");
  // Two tensors in the same bytes; two of one name; two metadata.
  EXPECT_NE(open(file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
                             "b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
                         "xy")),
            "");
  EXPECT_NE(open(file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                             "a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                         "xy")),
            "");
  EXPECT_NE(open(file_of(R"({"__metadata__":{"k":"1","k":"2"}})", "")), "");
  EXPECT_NE(open(file_of(R"({"__metadata__":{"k":1}})", "")), "");
  EXPECT_NE(
      open(file_of(R"({"a":{"dtype":"U8","dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "xy")),
      "");
  EXPECT_NE(open(file_of(R"({"a":{"dtype":"U8","shape":[2]}})", "xy")), "");
  EXPECT_NE(open(file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2],"x":1}})", "xy")),
            "");
  for (const char* text : {"{", "[]", "null", "{\"a\"", "{\"a\":", "{\"a\":{", "{\"\\ud83d\":1}",
                           "{\"\\x\":1}", "{\"a\n\":1}", "{\"a\":{},}"})
    EXPECT_NE(open(file_of(text, "")), "") << text;
  // Nesting goes no deeper than the format.
  EXPECT_NE(open(file_of(std::string(1 << 20, '['), "")), "");
  EXPECT_NE(open(file_of("{\"a\":{\"shape\":" + std::string(1 << 20, '['), "")), "");
  EXPECT_FALSE(file_.open(dir_.string(), error));
  EXPECT_FALSE(file_.open((dir_ / "none").string(), error));
}

// Cut anywhere, a file is refused; a bit changed anywhere, it is refused or read within its bytes.
TEST_F(Safetensors, CutAndFlippedEverywhere) {
  Made x("float32", {3}, random_floats(3), "out/out0"),
      y("bfloat16", {2, 2}, std::vector<uint16_t>{1, 2, 3, 4}, "in/self");
  std::string error;
  ASSERT_TRUE(write_safetensors(path_, {x.tensor, y.tensor}, {{"step", "3"}}, error));
  std::ifstream in(path_, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(open(whole.substr(0, n)), "") << n;
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    if (!open(changed).empty()) continue;
    uint64_t bytes = 0;
    for (const Tensor& tensor : file_.tensors()) bytes += tensor.size_bytes();
    EXPECT_LE(bytes, whole.size());
  }
}

}  // namespace
}  // namespace opguard
