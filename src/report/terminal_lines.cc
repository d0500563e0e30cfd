#include "report/terminal_lines.h"

#include "report/reasons.h"
#include "support/text.h"

namespace opguard {

std::string TerminalLines::paint(const char* code, const std::string& text) const {
  if (!colour_ || text.empty() || *code == 0) return text;
  return "\x1b[" + std::string(code) + "m" + text + "\x1b[0m";
}

void TerminalLines::line(const std::string& text) { text_ += text + "\n"; }

void TerminalLines::note(const std::string& text) {
  line(paint("33", "note") + ": " + shown(text));
}

std::string TerminalLines::why(const Pivot& pivot) const {
  return shown(words(report.a, report.b, pivot.why));
}

}  // namespace opguard
