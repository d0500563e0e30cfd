// docs/formats/invariants.md: its example is read, and it has every view with every column.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "invariants/invariants_file.h"

namespace opguard {
namespace {

std::string page() {
  std::ifstream in(std::string(OPGUARD_SOURCE) + "/docs/formats/invariants.md");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// What stands in backticks.
std::set<std::string> in_backticks(const std::string& text) {
  const std::regex code("`([^`]+)`");
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), code), end; it != end; ++it)
    found.insert((*it)[1]);
  return found;
}

std::vector<std::string> cells_of_line(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, '|');) cells.push_back(cell);
  return cells;
}

TEST(FormatPage, ItsExampleIsRead) {
  const std::string text = page(), fence = "```json\n";
  const size_t begin = text.find(fence);
  ASSERT_NE(begin, std::string::npos);
  const size_t end = text.find("```", begin + fence.size());
  InvariantsFile file;
  Diagnostics diags;
  EXPECT_TRUE(parse_invariants(
      "page", text.substr(begin + fence.size(), end - begin - fence.size()), views(), file, diags))
      << diags.text();
  EXPECT_EQ(file.notes, std::vector<std::string>{});
  ASSERT_EQ(file.invariants.size(), 2u);
  EXPECT_EQ(file.invariants[0].says, "A linear layer that is trained gets a gradient");
  EXPECT_EQ(file.invariants[0].severity, InvariantSeverity::error);
  EXPECT_TRUE(file.invariants[1].between);
}

TEST(FormatPage, HasEveryViewAndColumn) {
  std::istringstream in(page());
  std::map<std::string, std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);)
    if (const auto cells = cells_of_line(line); cells.size() == 5)
      if (const auto names = in_backticks(cells[1]); names.size() == 1)
        rows[*names.begin()] = cells;
  EXPECT_EQ(rows.size(), views().size());
  for (const RuleView& view : views()) {
    const auto row = rows.find(std::string(view.name));
    ASSERT_NE(row, rows.end()) << view.name;
    std::set<std::string> concluded, asked, names;
    for (const ViewColumn& column : view.columns) {
      std::string name(column.name);
      if (const size_t colon = name.find(':'); colon != std::string::npos)
        name = name.substr(0, colon) + ":CALL";
      (column.concluded ? concluded : column.names ? names : asked).insert(name);
    }
    const std::string& last = row->second[4];
    const size_t own = std::min(last.find("names:"), last.size());
    EXPECT_EQ(in_backticks(row->second[3]), concluded) << view.name;
    EXPECT_EQ(in_backticks(last.substr(0, own)), asked) << view.name;
    EXPECT_EQ(in_backticks(last.substr(own)), names) << view.name;
  }
}

}  // namespace
}  // namespace opguard
