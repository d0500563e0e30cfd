#include "report/terminal_pivot.h"

#include <algorithm>

#include "align/judge/pivot_view.h"
#include "report/region.h"
#include "report/rows.h"
#include "report/terminal_background.h"
#include "report/terminal_differences.h"
#include "report/terminal_event.h"
#include "report/terminal_proof.h"
#include "support/text.h"

namespace opguard {
namespace {

constexpr size_t kEqualBefore = 5;  // equal events shown before the pivot
constexpr size_t kAroundShown = 8;  // operators around the pivot, the innermost

// Where run b counts the step otherwise.
std::string other_step(const PivotView& both) {
  if (!both.a || !both.b || both.a.event->step == both.b.event->step) return "";
  return " (step " + std::to_string(both.b.event->step) + " of b)";
}

// --explain: what the judgement argued on its way to a candidate.
void print_heuristics(TerminalLines& out, const Pivot& pivot) {
  for (const HeuristicText& text : kHeuristics)
    if (pivot.heuristics.has(text.heuristic))
      out.line("  by " + std::string(text.name) + ": " + std::string(text.says));
}

// What each run has between values that both hold.
void print_region(TerminalLines& out, const Pivot& pivot) {
  const auto spans = region_of(out.report.a, out.report.b, pivot);
  if (spans[0].empty() && spans[1].empty()) return;
  out.line("");
  out.line("  " + out.paint("1", "region"));
  for (int side : {0, 1})
    out.line("    " + std::string(out.sides[side]) + "  " +
             (spans[side].empty() ? "nothing" : shown(region_text(spans[side]))));
}

// The call stack as the log has it: the recorded operators it ran inside of.
void print_surroundings(TerminalLines& out, const PivotView& both) {
  const EventView& event = both.b ? both.b : both.a;
  const std::vector<uint32_t> around = events_around(*event.log, event.index);
  if (around.empty()) return;
  out.line("");
  out.line("  " + out.paint("1", "inside"));
  // The innermost are kept: they are nearest to the pivot.
  const size_t left_out = around.size() - std::min(around.size(), kAroundShown);
  if (left_out > 0) out.line("    " + counted(left_out, "more operator"));
  for (size_t i = left_out; i < around.size(); ++i)
    out.line("    " + event_line(*event.log, around[i]));
}

// The alignment's entry for the process of the pivot.
const ProcessPair* process_of(const Report& report, const Pivot& pivot) {
  for (const ProcessPair& process : report.alignment.processes)
    if ((pivot.a.process >= 0 && process.a == pivot.a.process) ||
        (pivot.a.process < 0 && process.b == pivot.b.process))
      return &process;
  return nullptr;
}

// The last equal pairs before the pivot: in run a, or in b where a has no such event. They tell
// where in the program it stands.
void print_neighbours(TerminalLines& out, const PivotView& both) {
  const Pivot& pivot = out.report.verdict.candidates.front();
  const ProcessPair* process = process_of(out.report, pivot);
  if (!process || process->a < 0 || process->b < 0) return;
  std::vector<const Pair*> equal;
  for (const Pair& pair : process->pairs) {
    const bool before = both.a ? pair.a < both.a.index : pair.b < both.b.index;
    if (before && pair.equality == Equality::equal) equal.push_back(&pair);
  }
  if (equal.empty()) return;
  out.line("");
  out.line("  " + out.paint("1", "before it, equal in both runs"));
  for (size_t i = equal.size() - std::min(equal.size(), kEqualBefore); i < equal.size(); ++i)
    out.line("    " + event_line(out.report.b.processes[process->b], equal[i]->b));
}

}  // namespace

// `first` is by address: a copy of the pivot would lose its proof and its suspects.
void print_pivot(TerminalLines& out, const char* title, const Pivot& pivot) {
  const PivotView both = view(out.report.a, out.report.b, pivot);
  if (!both.either()) return;
  out.line("");
  out.line(out.paint("1", title + std::string(": ") + std::string(kind_name(pivot.kind)) + " in " +
                              shown(both.either().boundary)) +
           ", " + coordinates(both.either()) + other_step(both) +
           (both.slot.empty() ? "" : ", slot " + shown(both.slot)));
  if (!pivot.why.empty()) out.line("  " + out.why(pivot));
  if (out.report.explain) print_heuristics(out, pivot);
  out.line("");
  const Report& report = out.report;
  print_source(out, out.sides[0], both.a, both.a ? EventView() : same_boundary(report.a, both.b));
  print_source(out, out.sides[1], both.b, both.b ? EventView() : same_boundary(report.b, both.a));
  print_region(out, pivot);
  print_differences(out, both);
  const bool first = &pivot == out.report.verdict.candidates.data();
  if (first) {
    print_numbers(out);
    print_confirmation(out);
    print_drill(out);
  }
  print_surroundings(out, both);
  print_neighbours(out, both);
  if (first) print_suspects(out);
}

void print_candidates(TerminalLines& out) {
  const auto& all = out.report.verdict.candidates;
  if (all.size() < 2) return;
  out.line("");
  out.line(out.paint("1", "other candidates, in order"));
  for (size_t i = 1; i < all.size(); ++i) {
    const PivotView both = view(out.report.a, out.report.b, all[i]);
    if (!both.either()) continue;
    std::string text = "  " + std::to_string(i + 1) + ". " + kind_name(all[i].kind) + "  " +
                       shown(place(both.either())) + "  " + shown(both.either().operator_name);
    // Forward is what a reader expects: it is not said.
    if (both.either().event->phase != Phase::forward)
      text += " (" + std::string(phase_name(both.either().event->phase)) + ")";
    out.line(text + ": " + out.why(all[i]));
    if (i < out.report.confirmations.size() && out.report.confirmations[i].why)
      print_found(out, i, "     ");
    if (out.report.explain || is_cause(out.report, i)) print_nearest_suspect(out, i);
    if (out.report.explain) print_differences(out, both);
  }
}

}  // namespace opguard
