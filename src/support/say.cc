#include "support/say.h"

#include <unistd.h>

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
int outside = -1;

std::string as_said(const std::string& text) {
  std::string line = "opguard: " + lines_shown(text, "  ");
  if (line.back() != '\n') line += '\n';
  return line;
}

}  // namespace

void set_talk(Talk talk) { chosen = talk; }

Talk talk() { return chosen; }

void say_step(const std::string& text) {
  if (chosen != Talk::quiet) say(text);
}

void say(const std::string& text) { std::fputs(as_said(text).c_str(), stderr); }

void set_outside(int descriptor) { outside = descriptor; }

void say_outside(const std::string& text) {
  say(text);
  const std::string line = as_said(text);
  // Where it cannot be written nobody reads it.
  if (outside >= 0 && write(outside, line.data(), line.size()) < 0) outside = -1;
}

bool print_lines(const std::string& text) {
  const std::string lines = lines_shown(text, "");
  return std::fwrite(lines.data(), 1, lines.size(), stdout) == lines.size();
}

void print_diagnostics(const std::string& text) {
  std::fputs(lines_shown(text, "").c_str(), stderr);
}

}  // namespace opguard
