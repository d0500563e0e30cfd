// report/terminal_findings.cc: what one run says of itself, for people.
//
//   findings: 1 operator recomputed unlike in the forward, 47 of 48 recomputed operators compared
//   finding: race in loader.copy_:k2m4, forward, step 1, micro-batch 0, rank 0, slot arg0
//     left by loader.py:20:8: in fill
//     read by train.py:31:12: in step
//     the window: 120 us from loader.py:20 .copy_ (left it) in thread 0 to train.py:31 ...
//       thread 1  loader.py:44  .zero_, 3 times
//
// The report of two runs is used with one run twice, and an alignment of nothing. So a pivot prints
// here as it does there, under other names for its sides.
#include <algorithm>

#include "report/findings.h"
#include "report/notes_text.h"
#include "report/terminal_differences.h"
#include "report/terminal_event.h"
#include "report/terminal_pivot.h"
#include "support/text.h"

namespace opguard {
namespace {

void print_findings_headline(TerminalLines& out, const Findings& all) {
  const Outcome outcome = out.report.verdict.outcome;
  out.line((outcome == Outcome::identical  ? out.paint("1;32", "clean")
            : outcome == Outcome::diverged ? out.paint("1;31", "findings")
                                           : out.paint("1;33", "inconclusive")) +
           ": " + shown(findings_sentence(all)));
}

// Rounded up: a window of 10 ns is no window of none.
std::string microseconds(uint64_t ns) { return grouped((ns + 999) / 1000) + " us"; }

// When it was written, and what ran then.
void print_window(TerminalLines& out, const Overwrite& found) {
  constexpr size_t kPartsShown = 8;
  const EventView seen = view(out.report.a, found.seen), read = view(out.report.a, found.consumer);
  out.line("");
  out.line("  " + out.paint("1", "the window") + ": " + microseconds(found.to_ns - found.from_ns) +
           " from " + shown(place(seen)) + " " + shown(seen.operator_name) +
           (found.seen == found.producer ? " (left it)" : " (found it as it was left)") +
           " in thread " + std::to_string(seen.event->thread) + " to " + shown(place(read)) + " " +
           shown(read.operator_name) + " in thread " + std::to_string(read.event->thread));
  for (size_t i = 0; i < std::min(found.meanwhile.size(), kPartsShown); ++i) {
    const RanMeanwhile& part = found.meanwhile[i];
    const EventView event = view(out.report.a, part.first);
    out.line("    thread " + std::to_string(part.thread) + "  " + shown(place(event)) + "  " +
             shown(event.operator_name) +
             (part.count > 1 ? ", " + counted(part.count, "time") : ""));
  }
  if (found.meanwhile.size() > kPartsShown)
    out.line("    and " + counted(found.meanwhile.size() - kPartsShown, "more operator"));
  if (found.meanwhile.empty()) out.line("    no other recorded operator ran in it");
}

void print_overwrite(TerminalLines& out, const Pivot& pivot, const Overwrite& found) {
  const PivotView both = view(out.report.a, out.report.b, pivot);
  const ProcessLog& log = *both.b.log;
  out.line("");
  out.line(out.paint("1", std::string("finding: ") + kind_name(pivot.kind) + " in " +
                              shown(both.b.boundary)) +
           ", " + coordinates(both.b) + ", slot " + shown(both.slot));
  out.line("  " + out.why(pivot));
  out.line("");
  print_source(out, out.sides[0], both.a);
  print_source(out, out.sides[1], both.b);
  out.line("");
  out.line("  " + out.paint("1", "what differs"));
  const Slot left = log.slots[found.left], read = log.slots[found.read];
  const std::string name = shown(log.text(left.name));
  const size_t width = std::max(name.size(), shown(both.slot).size());
  print_slot(out, name, width, out.sides[0], log, left, read, false);
  print_slot(out, shown(both.slot), width, out.sides[1], log, read, left, false);
  print_window(out, found);
}

}  // namespace

// A candidate is two executions of one operator in the run, or who left memory and who read it.
std::string format_findings(const Run& run, const Findings& findings, bool colour) {
  const Verdict verdict = findings_verdict(findings);
  // Held by reference from the report below: it must outlive it.
  const Alignment alignment;
  const Report report{run, run, alignment, verdict, {}};
  TerminalLines out(report, colour);
  print_findings_headline(out, findings);
  const auto& candidates = verdict.candidates;
  const size_t recomputed = findings.recompute.findings.size();
  out.sides[0] = "first", out.sides[1] = "again";
  for (size_t i = 0; i < recomputed; ++i) print_pivot(out, "finding", candidates[i]);
  out.sides[0] = "left by", out.sides[1] = "read by";
  for (size_t i = recomputed; i < candidates.size(); ++i)
    print_overwrite(out, candidates[i], findings.overwritten.findings[i - recomputed]);
  const std::vector<std::string> open = log_notes(run);
  if (!open.empty()) out.line("");
  for (const std::string& note : open) out.note(note);
  return out.take();
}

}  // namespace opguard
