// The same results in five forms. In all of them a program's own words are made harmless, each form
// in its way.
//
//   terminal   shown(): no control character
//   Markdown   shown(), `|` escaped, a report within a fence longer than any in it
//   JUnit      shown(), then markup escaped
//   JSON       its own escapes; what is no UTF-8 is replaced
//
// Counterexample: a check that could not tell. In JUnit it is an error and no failure: nothing was
// found to differ.
#include "certify/write_results.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "llvm/ADT/StringRef.h"
#include "nlohmann/json.hpp"
#include "report/identity.h"
#include "support/text.h"
#include "support/version.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

std::string seconds_text(const CheckResult& result) {
  if (result.reused) return "reused";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", result.seconds);
  return text;
}

// Every line shown(): no control character reaches a terminal or a page.
std::string shown_lines(const std::string& text) {
  std::string out;
  llvm::StringRef rest = text;
  while (!rest.empty()) {
    const auto [line, after] = rest.split('\n');
    out += shown({line.data(), line.size()}) + "\n";
    rest = after;
  }
  return out;
}

std::string dumped(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Reports come as texts that were made elsewhere; one that is no JSON is left out, and stops
// nothing.
Json parsed(const std::string& text) {
  if (text.empty()) return nullptr;
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? Json(nullptr) : json;
}

using Row = std::array<std::string, 5>;

Row row_of(const CheckResult& result) {
  return {shown(result.check.name), tier_name(result.check.tier), outcome_name(result.outcome),
          seconds_text(result), shown(result.compared)};
}

// A cell of a Markdown table.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

// Longer than any run of backquotes in the text.
std::string fence_for(const std::string& text) {
  size_t longest = 2, run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return std::string(longest + 1, '`');
}

bool fine(const CheckResult& result) {
  return result.outcome == Certified::yes || result.outcome == Certified::accepted;
}

}  // namespace

std::string format_table(const std::vector<CheckResult>& results) {
  std::vector<Row> rows = {{"check", "tier", "result", "time", "compared"}};
  for (const CheckResult& result : results) rows.push_back(row_of(result));
  std::array<size_t, 5> width{};
  for (const Row& row : rows)
    // Bytes, not letters: a name beyond ASCII moves its row.
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += row[i] + std::string(width[i] - row[i].size() + 2, ' ');
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  for (const CheckResult& result : results) {
    if (fine(result) && result.outcome != Certified::accepted) continue;
    text += "\n" + shown(result.check.name) + ": " + outcome_name(result.outcome) + "\n";
    // A verdict's report begins with the sentence. It escapes what it shows.
    if (!result.report.starts_with(result.sentence)) text += shown(result.sentence) + "\n";
    text += result.report;
  }
  return text;
}

std::string format_markdown(const std::vector<CheckResult>& results, const std::string& title) {
  std::string text = "### opguard certify: " + cell(shown(title)) + "\n\n";
  text += "| check | tier | result | time | compared |\n|---|---|---|---|---|\n";
  for (const CheckResult& result : results) {
    text += "|";
    for (const std::string& part : row_of(result)) text += " " + cell(part) + " |";
    text += "\n";
  }
  for (const CheckResult& result : results) {
    if (result.outcome == Certified::yes) continue;
    text += "\n**" + cell(shown(result.check.name)) + "**: " + cell(shown(result.sentence)) + "\n";
    if (result.report.empty()) continue;
    const std::string report = shown_lines(result.report), fence = fence_for(report);
    text += "\n<details><summary>report</summary>\n\n" + fence + "\n" + report + fence +
            "\n\n</details>\n";
  }
  return text + "\n" + version_text() + "\n";
}

std::string format_junit(const std::vector<CheckResult>& results) {
  size_t failures = 0, errors = 0;
  double seconds = 0;
  std::string cases;
  for (const CheckResult& result : results) {
    seconds += result.seconds;
    char time[32];
    std::snprintf(time, sizeof time, "%.3f", result.seconds);
    cases += "  <testcase classname=\"opguard.certify." +
             std::string(tier_name(result.check.tier)) + "\" name=\"" +
             escape_markup(shown(result.check.name)) + "\" time=\"" + time + "\"";
    if (!result.file.empty())
      cases += " file=\"" + escape_markup(shown(result.file)) + "\" line=\"" +
               std::to_string(result.line) + "\"";
    if (fine(result)) {
      cases += result.outcome == Certified::accepted
                   ? ">\n    <system-out>" + escape_markup(shown(result.sentence)) +
                         "</system-out>\n  </testcase>\n"
                   : "/>\n";
      continue;
    }
    const bool failed = result.outcome == Certified::no;
    ++(failed ? failures : errors);
    const std::string element = failed ? "failure" : "error";
    cases += ">\n    <" + element + " message=\"" + escape_markup(shown(result.sentence)) + "\">" +
             escape_markup(shown_lines(result.report)) + "</" + element + ">\n  </testcase>\n";
  }
  char time[32];
  std::snprintf(time, sizeof time, "%.3f", seconds);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"opguard certify\" "
         "tests=\"" +
         std::to_string(results.size()) + "\" failures=\"" + std::to_string(failures) +
         "\" errors=\"" + std::to_string(errors) + "\" time=\"" + time + "\">\n" + cases +
         "</testsuite>\n";
}

std::string format_results(const std::vector<CheckResult>& results, const std::string& title) {
  Json json = identity_json(identity_now());
  json["certified"] = title;
  json["exit_code"] = exit_code(results);
  json["checks"] = Json::array();
  for (const CheckResult& result : results) {
    Json item = {{"name", result.check.name},
                 {"kind", kind_name(result.check.kind)},
                 {"tier", tier_name(result.check.tier)},
                 {"result", outcome_name(result.outcome)},
                 {"reused", result.reused},
                 {"seconds", result.seconds},
                 {"sentence", result.sentence},
                 {"compared", result.compared},
                 {"file", result.file},
                 {"line", result.line},
                 {"text", result.report}};
    item["report"] = parsed(result.json);
    json["checks"].push_back(std::move(item));
  }
  return dumped(json);
}

std::string merge_sarif(const std::vector<CheckResult>& results) {
  Json all = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
              {"version", "2.1.0"},
              {"runs", Json::array()}};
  for (const CheckResult& result : results) {
    Json one = parsed(result.sarif);
    if (!one.is_object()) continue;
    for (Json& run : one["runs"]) {
      // So the runs of one file can be told apart.
      run["automationDetails"] = {{"id", "opguard/certify/" + result.check.name}};
      all["runs"].push_back(std::move(run));
    }
  }
  return dumped(all);
}

}  // namespace opguard
