// certify/write_results.h: the results of the checks, for people and for the programs of a CI.
//
//   format_table      a line a check, and below it the report of each that is not certified
//   format_markdown   the same for a pull request: a table, the reports folded
//   format_junit      JUnit XML: a test case a check, failure and error as usual
//   format_results    JSON, with the report of each as `opguard diff --json` writes it
//   merge_sarif       one SARIF file of those of the checks
#pragma once

#include <string>
#include <vector>

#include "certify/check.h"

namespace opguard {

// title: what was certified: "9488786f21ab+ in /home/me/repo".
std::string format_table(const std::vector<CheckResult>& results);
std::string format_markdown(const std::vector<CheckResult>& results, const std::string& title);
std::string format_junit(const std::vector<CheckResult>& results);
std::string format_results(const std::vector<CheckResult>& results, const std::string& title);
std::string merge_sarif(const std::vector<CheckResult>& results);

}  // namespace opguard
