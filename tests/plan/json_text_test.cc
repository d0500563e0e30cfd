#include "plan/json_text.h"

#include "gtest/gtest.h"

namespace opguard {
namespace {

std::string diagnose(const std::string& text) {
  Diagnostics diags;
  JsonText json("x.json", text, diags);
  JsonValue root;
  json.parse(root);
  return diags.text();
}

TEST(JsonText, ValuesKnowTheirPlace) {
  Diagnostics diags;
  std::string text = R"({"a\"b": [12, -3.5, "x\\"], "t": true, "n": null})";
  JsonText json("x.json", text, diags);
  JsonValue root;
  ASSERT_TRUE(json.parse(root)) << diags.text();
  auto slice = [&](const JsonValue& v) { return text.substr(v.begin, v.end - v.begin); };
  EXPECT_EQ(slice(root), text);
  EXPECT_EQ(slice(root.members[0].first), R"("a\"b")");
  const JsonValue& list = root.members[0].second;
  EXPECT_EQ(slice(list), R"([12, -3.5, "x\\"])");
  EXPECT_EQ(slice(list.items[0]), "12");
  EXPECT_EQ(slice(list.items[1]), "-3.5");
  EXPECT_EQ(slice(list.items[2]), R"("x\\")");
  EXPECT_EQ(slice(*root.find("t")), "true");
  EXPECT_EQ(slice(*root.find("n")), "null");
  EXPECT_EQ(list.items[0].integer, 12u);
  EXPECT_DOUBLE_EQ(list.items[1].real, -3.5);
}

TEST(JsonText, SaysWhereItIsNotJson) {
  EXPECT_NE(diagnose("{\"a\": 1,\n \"b\": ?}").find("x.json:2:7: error: not JSON"),
            std::string::npos)
      << diagnose("{\"a\": 1,\n \"b\": ?}");
  EXPECT_NE(diagnose("{\"a\": [1, 2").find("cut short"), std::string::npos);
  EXPECT_NE(diagnose("").find("the file is empty"), std::string::npos);
  EXPECT_NE(diagnose(std::string(5000, '[')).find("nested too deeply"), std::string::npos);
}

TEST(JsonText, FirstFaultOnly) {
  Diagnostics diags;
  JsonText json("x.json", R"({"a": "text"})", diags);
  JsonValue root;
  ASSERT_TRUE(json.parse(root));
  uint32_t number = 0;
  std::string missing;
  json.read(root, "a", number);
  json.read(root, "b", missing);
  ASSERT_EQ(diags.items().size(), 1u);
  EXPECT_EQ(diags.items()[0].message, "'a' must be a whole number");
  EXPECT_EQ(diags.items()[0].column, 6u);
  EXPECT_EQ(diags.items()[0].length, 6u);
}

TEST(JsonText, NumbersOutOfRangeAreRefused) {
  for (const char* text : {R"({"n": -1})", R"({"n": 4294967296})", R"({"n": 18446744073709551615})",
                           R"({"n": 1.5})", R"({"n": 1e400})"}) {
    Diagnostics diags;
    JsonText json("x.json", text, diags);
    JsonValue root;
    uint32_t n = 7;
    if (json.parse(root)) json.read(root, "n", n);
    EXPECT_TRUE(json.failed()) << text;
    EXPECT_EQ(diags.items().size(), 1u) << text;
  }
}

}  // namespace
}  // namespace opguard
