#include "certify/write_results.h"

#include <gtest/gtest.h>

#include "nlohmann/json.hpp"

namespace opguard {
namespace {

std::vector<CheckResult> results() {
  CheckResult good;
  good.check.name = "replay";
  good.outcome = Certified::yes;
  good.compared = "105 pairs equal, one run twice";
  good.seconds = 1.25;
  CheckResult kept = good;
  kept.check.name = "kept";
  kept.reused = true;
  CheckResult bad;
  bad.check.name = "default-path";
  bad.outcome = Certified::no;
  bad.sentence = "diverged: a < b & \"c\"";
  bad.report = "diverged: a < b & \"c\"\n  ```\n  \x1b[31mred\n";
  bad.file = "model.py";
  bad.line = 9;
  bad.sarif = R"({"runs": [{"results": []}]})";
  bad.json = R"({"verdict": "diverged"})";
  CheckResult unknown;
  unknown.check.name = "ranks|2";
  unknown.outcome = Certified::undecided;
  unknown.sentence = "the program ended with exit code 1";
  return {good, kept, bad, unknown};
}

TEST(WriteResults, ATable) {
  EXPECT_EQ(format_table({results()[0], results()[1], results()[3]}),
            "check    tier       result          time    compared\n"
            "replay   bit-exact  certified       1.2 s   105 pairs equal, one run twice\n"
            "kept     bit-exact  certified       reused  105 pairs equal, one run twice\n"
            "ranks|2  bit-exact  could not tell  0.0 s\n"
            "\n"
            "ranks|2: could not tell\n"
            "the program ended with exit code 1\n");
  // What a report begins with is not said twice.
  EXPECT_NE(format_table({results()[2]}).find("not certified\ndiverged: a < b & \"c\"\n  ```\n"),
            std::string::npos);
}

TEST(WriteResults, JUnitCountsAndEscapes) {
  const std::string text = format_junit(results());
  EXPECT_NE(text.find("tests=\"4\" failures=\"1\" errors=\"1\""), std::string::npos);
  EXPECT_NE(text.find("name=\"default-path\" time=\"0.000\" file=\"model.py\" line=\"9\""),
            std::string::npos);
  EXPECT_NE(text.find("<failure message=\"diverged: a &lt; b &amp; &quot;c&quot;\">"),
            std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(WriteResults, MarkdownKeepsReportsInTheirFence) {
  const std::string text = format_markdown(results(), "abc in /repo");
  EXPECT_NE(text.find("| ranks\\|2 | bit-exact | could not tell | 0.0 s |  |\n"),
            std::string::npos);
  // The report has three backquotes of its own.
  EXPECT_NE(text.find("\n````\ndiverged"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(WriteResults, JsonAndSarifHoldTheReports) {
  const auto json = nlohmann::json::parse(format_results(results(), "abc"));
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["checks"][2]["report"]["verdict"], "diverged");
  EXPECT_TRUE(json["checks"][0]["report"].is_null());
  EXPECT_EQ(json["checks"][1]["reused"], true);
  const auto sarif = nlohmann::json::parse(merge_sarif(results()));
  ASSERT_EQ(sarif["runs"].size(), 1u);
  EXPECT_EQ(sarif["runs"][0]["automationDetails"]["id"], "opguard/certify/default-path");
}

}  // namespace
}  // namespace opguard
