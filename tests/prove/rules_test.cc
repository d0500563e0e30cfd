// Cases of `--rules` in files made here: what gloo gave is right, wrong, or not there.
#include "prove/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "nlohmann/json.hpp"
#include "scratch.h"

namespace opguard::proving {
namespace {

using nlohmann::json;

// Two ranks add up x, which is 2 on rank 0 and 5 on rank 1.
class RulesTest : public testing::Test {
 protected:
  RulesTest() {
    const json x = {{"t", {0, 0, {1}, {1}, "float64"}}};
    for (int r = 0; r < 2; ++r)
      write("collective-0-rank-" + std::to_string(r) + ".json",
            {{"version", 1},
             {"rank", r},
             {"world", 2},
             {"values", {{"x", {r == 0 ? 2.0 : 5.0}}}},
             {"stacks", json::array({json::array()})},
             {"constants", json::object()},
             {"inputs", {{"x", x}}},
             {"outputs", {{"out0", x}}},
             {"nodes",
              json::array({{{"op", op},
                            {"args", {json::array({x}), {{"group", {0, 1}}}, {{"reduce", "sum"}}}},
                            {"kwargs", json::object()},
                            {"out", json::array({x})},
                            {"writes", json::array({x})},
                            {"at", 0}}})}});
  }
  ~RulesTest() override { std::filesystem::remove_all(folder); }
  void write(const std::string& name, const json& file) const {
    std::ofstream(folder + "/" + name) << file;
  }
  RulesChecked checked(json about) const {
    about.update({{"name", "a sum"}, {"world", 2}});
    write("rules.json",
          {{"version", 1}, {"rules", json::array()}, {"collectives", json::array({about})}});
    RulesChecked found;
    check_collective_rules(folder, found);
    return found;
  }
  static bool names(const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  const std::string op = "c10d.allreduce_.default";
  const std::string folder = make_scratch().string();
};

TEST_F(RulesTest, ACollectiveIsComparedWithEachRanksNumbers) {
  const RulesChecked found = checked({{"expected", {{{"out0", {7.0}}}, {{"out0", {7.0}}}}}});
  ASSERT_EQ(found.collective_cases.size(), 1u);
  EXPECT_EQ(found.collective_cases[0].wrong, "");
  EXPECT_EQ(found.collective_cases[0].elements, 2u);
  EXPECT_TRUE(names(found.collectives, "c10d.allreduce_"));
  EXPECT_FALSE(names(found.collectives_not_compared, "c10d.allreduce_"));
  EXPECT_FALSE(names(found.collectives_not_compared, "by sum"));
  EXPECT_TRUE(names(found.collectives_not_compared, "by avg"));
}

TEST_F(RulesTest, AnotherNumberOfOneRankIsWrongAndNotCompared) {
  const RulesChecked found = checked({{"expected", {{{"out0", {7.0}}}, {{"out0", {5.0}}}}}});
  EXPECT_EQ(found.collective_cases[0].wrong,
            "out0[0] of rank 1: torch has 5.000000, the meaning 7.000000");
  EXPECT_TRUE(names(found.collectives_not_compared, "c10d.allreduce_"));
}

TEST_F(RulesTest, WhatGlooLacksIsNotCompared) {
  const RulesChecked found = checked({{"lacking", "no such reduction"}});
  EXPECT_EQ(found.collective_cases[0].wrong, "");
  EXPECT_EQ(found.collective_cases[0].lacking, "no such reduction");
  EXPECT_EQ(found.collective_cases[0].elements, 0u);
  EXPECT_TRUE(names(found.collectives_not_compared, "c10d.allreduce_"));
}

TEST_F(RulesTest, WhatGlooRaisesIsWrong) {
  const RulesChecked found = checked({{"raised", "ValueError: shapes"}});
  EXPECT_EQ(found.collective_cases[0].wrong, "gloo: ValueError: shapes");
}

}  // namespace
}  // namespace opguard::proving
