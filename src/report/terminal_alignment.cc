// Behind the verdict: how much was compared, and what of it is certified equal.
//
//   1,204 of 1,310 pairs certified equal, up to step 3, forward, model.py:12 (rank 0)
//   hidden: 12 pairs by rules, 4 more that read what rules hide
//   rank 1: 655 pairs, 3 unequal; first model.py:12 softmax, step 3, forward
//   without a partner: 0 events of a, 2 events of b
//
// A line is there only if it has something to say. Counterexample: "hidden: 0 pairs" in every
// report would be read over, also where it is not 0.
//
// States of random generators are told last. Seeded unlike, they differ from the first record on,
// and the first operator that differs would be behind them.
#include "report/terminal_alignment.h"

#include <algorithm>

#include "align/judge/pivot_view.h"
#include "align/pair/difference.h"
#include "report/rank_text.h"
#include "report/rows.h"
#include "report/step_text.h"
#include "report/terminal_event.h"
#include "support/text.h"

namespace opguard {
namespace {

constexpr size_t kSlotsShown = 16;     // names of those that differ
constexpr size_t kLeftoversShown = 5;  // events without a partner, per side, by --explain

// Generators seeded unlike come last: they differ from the first record on.
const Pair* first_unequal_pair(const Report& report) {
  const Pair* state = nullptr;
  for (const Pair* pair : pairs_in_order(report.a, report.alignment)) {
    if (pair->equality == Equality::equal || pair->equality == Equality::hidden) continue;
    if (!passed_over(report.a, report.alignment, *pair)) return pair;
    if (!state) state = pair;
  }
  return state;
}

// Runs may differ where no model value depends on it: that is not hidden.
void print_first_unequal(TerminalLines& out) {
  const Pair* pair = first_unequal_pair(out.report);
  if (!pair) return;
  const ProcessPair& process = out.report.alignment.processes[pair->process];
  const EventView a = view(out.report.a.processes[process.a], pair->a),
                  b = view(out.report.b.processes[process.b], pair->b);
  std::string text = counted(out.report.alignment.unequal, "pair") +
                     (out.report.alignment.unequal == 1 ? " differs: " : " differ, the first: ");
  // Of states every slot is named: each is a generator. Of an operator the first slot is enough.
  const bool states = b.event->kind == EventKind::state;
  text +=
      states ? "the states of random generators" : shown(place(b)) + " " + shown(b.operator_name);
  text += ", " + coordinates(b);
  const SlotDifferences slots(*a.log, *a.event, *b.log, *b.event);
  if (!slots.slots.empty()) {
    size_t named = 0;
    for (const SlotPair& slot : slots.slots) {
      if (named == kSlotsShown) {
        text += " and " + std::to_string(slots.slots.size() - named) + " more";
        break;
      }
      text += named++ > 0 ? ", " : states && slots.slots.size() > 1 ? ", slots " : ", slot ";
      text += shown(slot.b ? b.log->text(slot.b->name) : a.log->text(slot.a->name));
      if (!states) break;
    }
  }
  out.line(text);
}

// Of several ranks each gets a line: where it first differs.
void print_ranks(TerminalLines& out) {
  size_t count = 0;
  for (const Lane& lane : lanes_of(out.report)) {
    if (++count > kRanksShown) continue;
    uint64_t pairs = 0, unequal = 0, alone = 0;
    // The first row that differs and is no generator's state; where all are, the first of these.
    const LaneRow* first = nullptr;
    for (const LaneRow& row : lane.rows) {
      pairs += row.paired();
      unequal += row.paired() && row.differs();
      alone += !row.paired();
      if (row.differs() &&
          (!first || (is_state(out.report, lane, *first) && !is_state(out.report, lane, row))))
        first = &row;
    }
    std::string text = "rank " + std::to_string(lane.rank);
    if (lane.ordinal > 0) text += ", process " + std::to_string(lane.ordinal + 1);
    text += ": " + counted(pairs, "pair") + ", ";
    text += unequal == 0 ? "all equal" : grouped(unequal) + " unequal";
    if (alone > 0) text += ", " + counted(alone, "event") + " without a partner";
    if (first) {
      const bool in_b = first->b != kNone;
      const EventView event = in_b ? view(out.report.b.processes[lane.b], first->b)
                                   : view(out.report.a.processes[lane.a], first->a);
      text += "; first " + shown(place(event)) + " " + shown(event.operator_name) + ", step " +
              std::to_string(event.event->step) + ", " + phase_name(event.event->phase);
    }
    out.line(text);
  }
  if (count > kRanksShown) out.line("and " + std::to_string(count - kRanksShown) + " more");
}

void print_leftovers(TerminalLines& out, const char* side, const ProcessLog& log,
                     const std::vector<uint32_t>& events) {
  for (size_t i = 0; i < std::min(events.size(), kLeftoversShown); ++i)
    out.line("    only in " + std::string(side) + ": " + event_line(log, events[i]) + ", step " +
             std::to_string(log.events[events[i]].step));
  if (events.size() > kLeftoversShown)
    out.line("    only in " + std::string(side) + ": " +
             counted(events.size() - kLeftoversShown, "more event"));
}

}  // namespace

void print_certificate(TerminalLines& out) {
  const Alignment& alignment = out.report.alignment;
  out.line("");
  std::string text = grouped(alignment.certified_prefix) + " of " +
                     counted(alignment.pairs, "pair") + " certified equal";
  if (const Pair* last = last_certified(out.report.a, alignment)) {
    const ProcessPair& process = alignment.processes[last->process];
    const EventView event = view(out.report.a.processes[process.a], last->a);
    text += ", up to step " + std::to_string(event.event->step) + ", " +
            phase_name(event.event->phase) + ", " + shown(place(event)) + " (rank " +
            std::to_string(event.log->rank) + ")";
  }
  out.line(text);
  if (out.report.verdict.candidates.empty() && out.report.verdict.unreached.empty() &&
      alignment.unequal > 0)
    print_first_unequal(out);
  if (alignment.hidden + alignment.following > 0)
    out.line("hidden: " + counted(alignment.hidden, "pair") + " by rules" +
             (alignment.following > 0
                  ? ", " + grouped(alignment.following) + " more that read what rules hide"
                  : ""));
  if (alignment.processes.size() > 1) print_ranks(out);
  if (out.report.verdict.harmless > 0)
    out.line("off the trail: " + counted(out.report.verdict.harmless, "differing event") +
             " before the pivot that were not met on the way back to it");
  for (const std::string& text : step_sentences(alignment)) out.line("steps: " + text);
  uint64_t only_a = 0, only_b = 0;
  for (const ProcessPair& process : alignment.processes) {
    only_a += process.only_a.size();
    only_b += process.only_b.size();
  }
  if (only_a + only_b > 0)
    out.line("without a partner: " + counted(only_a, "event") + " of a, " +
             counted(only_b, "event") + " of b");
  const Coverage& coverage = out.report.coverage;
  if (coverage.activities > 0) {
    // Rounded down, so that 100.0% is said of all and nothing less.
    const uint64_t permille = coverage.attributed * 1000 / coverage.activities;
    out.line("coverage: " + std::to_string(permille / 10) + "." + std::to_string(permille % 10) +
             "% of the device work belongs to an instrumented operator, " +
             counted(coverage.unmatched_sites, "unmatched site"));
  }
}

//   rank 0, process 4711: 1,310 pairs, 1,298 equal, 12 unequal by outputs
void print_pairing(TerminalLines& out) {
  out.line("");
  out.line(out.paint("1", "pairing"));
  for (const ProcessPair& process : out.report.alignment.processes) {
    const bool in_a = process.a >= 0, in_b = process.b >= 0;
    const ProcessLog& log =
        in_a ? out.report.a.processes[process.a] : out.report.b.processes[process.b];
    uint64_t counts[6] = {};
    for (const Pair& pair : process.pairs) ++counts[int(pair.equality)];
    std::string text = "  rank " + std::to_string(log.rank) + ", process " +
                       std::to_string(log.pid) + ": " + counted(process.pairs.size(), "pair");
    for (Equality e : {Equality::equal, Equality::outputs, Equality::scalars, Equality::inputs,
                       Equality::shape, Equality::hidden})
      if (counts[int(e)] > 0)
        text += ", " + grouped(counts[int(e)]) +
                (e == Equality::equal    ? " equal"
                 : e == Equality::hidden ? " hidden by rules"
                                         : " unequal by " + std::string(equality_name(e)));
    out.line(text);
    if (in_a) print_leftovers(out, "a", out.report.a.processes[process.a], process.only_a);
    if (in_b) print_leftovers(out, "b", out.report.b.processes[process.b], process.only_b);
  }
}

}  // namespace opguard
