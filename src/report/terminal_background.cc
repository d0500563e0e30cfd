// Numbers and suspects of the pivot. They are read from the sources, so they stand below what was
// measured.
//
//   where group0.lr can come from: 0.0002 in a, 0.0 in b
//     a  train.py:13   opt = AdamW(params, lr=rate)
//        config.py:4   rate = 2e-4  <- differs
//     b  train.py:13   opt = AdamW(params, lr=rate)
//        config.py:4   rate = 0.0  <- differs
//   suspects: where the sources differ and ran before it, the nearest first
//     model.py:40: in its function
//       - return x * scale
//       + return x / scale
//
// "<- differs" stands at the end of a way alone: the statement there is not the same in both
// programs.
#include "report/terminal_background.h"

#include <algorithm>

#include "report/background_text.h"
#include "report/terminal_event.h"
#include "support/text.h"

namespace opguard {
namespace {

constexpr size_t kSuspectsShown = 4;  // of the pivot; all by --explain
constexpr size_t kSuspectLines = 2;   // of each side of a suspect

}  // namespace

void print_numbers(TerminalLines& out) {
  const Background* known = background_of(out.report, 0);
  if (!known) return;
  for (const Number& number : known->numbers) {
    if (number.ways.empty()) continue;
    out.line("");
    out.line("  " + out.paint("1", number_title(number)));
    size_t width = 0;
    for (const NumberWay& way : number.ways)
      for (const SourceText& step : way.steps) width = std::max(width, place_text(step).size());
    for (const NumberWay& way : number.ways) {
      // A way names its side once, before its first step.
      std::string side = out.sides[way.side];
      for (size_t i = 0; i < way.steps.size(); ++i) {
        const bool last = i + 1 == way.steps.size();
        const std::vector<std::string> text = shown_lines(way.steps[i], 1, kColumns);
        const std::string at = place_text(way.steps[i]);
        out.line("    " + side + "  " + out.paint("36", at) +
                 std::string(width + 2 - at.size(), ' ') + (text.empty() ? "" : text[0]) +
                 (last && way.changed ? "  " + out.paint("1;33", "<- differs") : ""));
        side = " ";
      }
    }
  }
}

void print_suspects(TerminalLines& out) {
  const Background* known = background_of(out.report, 0);
  if (!known || known->suspects.empty()) return;
  out.line("");
  out.line("  " + out.paint("1", "suspects") +
           ": where the sources differ and ran before it, the nearest first");
  const size_t all = known->suspects.size();
  const size_t shown_count = out.report.explain ? all : std::min(all, kSuspectsShown);
  for (size_t i = 0; i < shown_count; ++i) {
    const Suspect& suspect = known->suspects[i];
    out.line("    " + out.paint("36", place_text(suspect)) + ": " + suspect_text(suspect));
    for (const std::string& text : shown_lines(suspect.sides[0], kSuspectLines, kColumns))
      out.line("      " + out.paint("31", "- " + text));
    for (const std::string& text : shown_lines(suspect.sides[1], kSuspectLines, kColumns))
      out.line("      " + out.paint("32", "+ " + text));
  }
  const size_t left_out = all - shown_count + known->more;
  if (left_out > 0)
    out.line("    and " + counted(left_out, "more place") +
             (out.report.explain ? "" : " (--explain)"));
}

void print_nearest_suspect(TerminalLines& out, size_t candidate) {
  const Background* known = background_of(out.report, candidate);
  if (!known || known->suspects.empty()) return;
  const Suspect& suspect = known->suspects.front();
  // A file or a time alone is too little to be said in one line.
  if (suspect.nearness > Nearness::trail) return;
  out.line("     suspect: " + place_text(suspect) + ": " + suspect_text(suspect));
}

}  // namespace opguard
