#include "support/say.h"

#include <cstdio>
#include <string_view>

#include "support/text.h"

namespace opguard {
namespace {

// Each line of the text as it is shown, `begin` before all but the first.
std::string lines_shown(std::string_view text, const char* begin) {
  std::string out;
  while (true) {
    const size_t end = text.find('\n');
    out += shown(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
    if (text.empty()) return out;
    out += begin;
  }
}

Talk chosen = Talk::normal;

}  // namespace

void set_talk(Talk talk) { chosen = talk; }

Talk talk() { return chosen; }

void say_step(const std::string& text) {
  if (chosen != Talk::quiet) say(text);
}

void say(const std::string& text) {
  std::string line = "opguard: " + lines_shown(text, "  ");
  if (line.back() != '\n') line += '\n';
  std::fputs(line.c_str(), stderr);
}

bool print_lines(const std::string& text) {
  const std::string lines = lines_shown(text, "");
  return std::fwrite(lines.data(), 1, lines.size(), stdout) == lines.size();
}

void print_diagnostics(const std::string& text) {
  std::fputs(lines_shown(text, "").c_str(), stderr);
}

}  // namespace opguard
