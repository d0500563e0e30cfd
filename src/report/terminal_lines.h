// report/terminal_lines.h: the lines of a report for people, as its sections add them.
//
//   out.line("  " + out.paint("1", "region"))           bold on a terminal, plain in a file
//   out.line("  " + shown(event.operator_name))         a name of the user's, made safe
//
// Each section is a file of its own, terminal_<noun>.h; terminal.cc puts them in order.
//
// line() escapes nothing. A section applies shown() to what is of unknown origin, before it is
// painted. Counterexample: shown() over the whole line would spell out the colours' own codes.
#pragma once

#include <string>
#include <utility>

#include "report/report.h"

namespace opguard {

inline constexpr size_t kRanksShown = 16;  // a line each

class TerminalLines {
 public:
  TerminalLines(const Report& of, bool colour) : report(of), colour_(colour) {}

  const Report& report;
  const char* sides[2] = {"a", "b"};  // what the two of a pair are called

  // SGR codes: 31 red, 32 green, 33 yellow, 36 cyan, 1 bold, 2 faint; "" leaves the text plain.
  // Without colours, and of "", the text as it is: so its size is its width.
  std::string paint(const char* code, const std::string& text) const;
  void line(const std::string& text);
  // "note: ...", escaped.
  void note(const std::string& text);
  // Why a candidate is named, escaped.
  std::string why(const Pivot& pivot) const;
  // All lines so far.
  std::string take() { return std::move(text_); }

 private:
  const bool colour_;
  std::string text_;
};

}  // namespace opguard
