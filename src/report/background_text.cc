#include "report/background_text.h"

#include <algorithm>

#include "report/region.h"
#include "support/text.h"

namespace opguard {

const Background* background_of(const Report& report, size_t candidate) {
  return candidate < report.backgrounds.size() ? &report.backgrounds[candidate] : nullptr;
}

std::string place_text(const SourceText& text) {
  if (text.lines.empty()) return "";
  const std::string& file = text.file.empty() ? text.path : text.file;
  return shown(file) + ":" + lines_text(text.lines.first, text.lines.last);
}

std::string place_text(const Suspect& suspect) {
  const std::string a = place_text(suspect.sides[0]), b = place_text(suspect.sides[1]);
  if (a == b) return a;
  const std::string only = a.empty() ? "b " + b : "a " + a;
  if (suspect.whole) return only + ", a file of " + only.substr(0, 1) + " alone";
  if (a.empty() || b.empty()) return only + ", only there";
  return "a " + a + ", b " + b;
}

static std::string nearness_text(Nearness nearness) {
  switch (nearness) {
    case Nearness::statement:
      return "its statement";
    case Nearness::origin:
      return "the value can come from there";
    case Nearness::function:
      return "in its function";
    case Nearness::decides:
      return "a condition that leads to it reads what comes from there";
    case Nearness::trail:
      return "in a function that leads to it";
    case Nearness::file:
      return "in its file";
    case Nearness::earlier:
      return "ran before it";
    case Nearness::unseen:
      return "read by the program, not seen to run";
  }
  return "";
}

std::string suspect_text(const Suspect& suspect) {
  return nearness_text(suspect.nearness) +
         (suspect.agrees() ? "; what it computed is equal in both runs" : "");
}

std::string number_title(const Number& number) {
  if (number.name.empty()) return "what the operator itself can have been made with";
  auto value = [](const std::string& text) {
    const MarkedLine cut = mark_line(text, 0, 0, 40);
    return text.empty() ? std::string("nothing") : cut.line;
  };
  return "where " + shown(number.name) + " can come from: " + value(number.value[0]) + " in a, " +
         value(number.value[1]) + " in b";
}

std::vector<std::string> shown_lines(const SourceText& text, size_t most, uint32_t columns) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < std::min(text.text.size(), most); ++i)
    lines.push_back(mark_line(text.text[i], 0, 0, columns).line);
  // Of a long stretch the first lines are known alone: what is left out is told by the lines'
  // numbers.
  const size_t all = text.lines.empty() ? 0 : text.lines.last - text.lines.first + 1;
  if (!lines.empty() && all > lines.size()) lines.push_back("...");
  return lines;
}

}  // namespace opguard
