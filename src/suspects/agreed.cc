// Which events stand in which statements, and whether each of them left what the other run has.
//
//   b:14  y = torch.unsqueeze(x.permute(2, 0, 1), 0)
//         events permute and unsqueeze, both paired and equal; two calls in the text, both seen
//         the statement agrees
//
// Three things make a statement not agree. One of its events differs. A call in it has no event
// that stands for it. No event of it left a tensor.
//
// Counterexample: a hunk's `def` line of a function that one program alone has. Its statements are
// asked, and not the function as one.
//
// The cost: beside the passes over events a look at each statement for each boundary of the log.
#include "suspects/agreed.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace opguard {
namespace {

// A stretch of text, as lines and columns of its two ends.
struct Stretch {
  std::pair<uint32_t, uint32_t> from, to;
  bool holds(const Stretch& other) const { return from <= other.from && other.to <= to; }
};

// A statement of a hunk, on one side.
struct Statement {
  uint32_t hunk = 0;
  LineSpan lines;
  std::vector<Stretch> unseen;  // calls in it that no recorded operator stands for
  bool measured = false;
  bool agrees = true;
};

class Measurer {
 public:
  Measurer(const Programs& programs, const Alignment& alignment, const Pivot& pivot,
           const std::vector<Hunk>& hunks)
      : programs_(programs), alignment_(alignment), hunks_(hunks) {
    own_ = {pivot.a, pivot.b};
  }

  std::vector<HunkStatements> run() {
    for (const ProcessPair& both : alignment_.processes)
      if (both.a >= 0 && both.b >= 0 && is_of(both)) measure(both);
    std::vector<HunkStatements> all(hunks_.size());
    for (int side : {0, 1})
      for (const Statement& at : statements_[side])
        all[at.hunk][side].push_back({at.lines, at.measured && at.agrees && at.unseen.empty()});
    return all;
  }

 private:
  // The pair of processes in which the candidate stands. Other ranks may have gone on further.
  bool is_of(const ProcessPair& both) const {
    return own_[0].process >= 0 ? own_[0].process == both.a : own_[1].process == both.b;
  }

  const ProcessLog& log(int side, const ProcessPair& both) const {
    return programs_.runs[side]->processes[side == 0 ? both.a : both.b];
  }

  void measure(const ProcessPair& both) {
    for (int side : {0, 1}) read_statements(side, log(side, both));
    uint32_t end[2] = {own_[0].process >= 0 ? own_[0].event : UINT32_MAX,
                       own_[1].process >= 0 ? own_[1].event : UINT32_MAX};
    // Of a candidate of one run alone: the other run's events up to what is known to stand before.
    for (int side : {0, 1}) {
      if (own_[side].process >= 0) continue;
      end[side] = 0;
      for (const Pair& pair : both.pairs)
        if ((side == 0 ? pair.b : pair.a) < end[1 - side])
          end[side] = std::max(end[side], side == 0 ? pair.a : pair.b);
    }
    for (const Pair& pair : both.pairs) {
      // What a rule hides counts as equal.
      const bool agrees = pair.equality == Equality::equal || pair.equality == Equality::hidden;
      // One of the two before the candidate is enough: the order may be another on the other side.
      if (pair.a <= end[0] || pair.b <= end[1]) {
        tell(0, log(0, both), pair.a, agrees && same_graph(both, pair));
        tell(1, log(1, both), pair.b, agrees && same_graph(both, pair));
      }
    }
    for (int side : {0, 1}) {
      std::vector<uint32_t> alone;
      for (uint32_t event : side == 0 ? both.only_a : both.only_b)
        if (event <= end[side] && statements_at(side, log(side, both), event))
          alone.push_back(event);
      tell_alone(side, both, alone);
    }
  }

  // Operators of one run alone: what they leave is known to the other run, and none takes a value
  // out of the graph. One that leaves no tensor (`torch.manual_seed(1)`) was not measured.
  void tell_alone(int side, const ProcessPair& both, const std::vector<uint32_t>& alone) {
    if (alone.empty()) return;
    const ProcessLog &own = log(side, both), &other = log(1 - side, both);
    using Key = std::pair<uint64_t, uint64_t>;
    std::set<Key> wanted;
    each_left(own, alone,
              [&](uint32_t, const Slot& slot) { wanted.emplace(slot.value.h, slot.value.m); });
    // Among all that the other run has, read or left, whoever made it.
    std::set<Key> found;
    for (uint64_t s = 0; s < other.slots.size() && found.size() < wanted.size(); ++s) {
      const Slot slot = other.slots[s];
      const Key key{slot.value.h, slot.value.m};
      if (wanted.contains(key)) found.insert(key);
    }
    std::unordered_map<uint32_t, bool> known;  // of those that leave something: all of it
    each_left(own, alone, [&](uint32_t event, const Slot& slot) {
      known.try_emplace(event, true).first->second &=
          !(slot.flags & kUnreadable) && found.contains({slot.value.h, slot.value.m});
    });
    for (uint32_t event : alone) {
      const auto at = known.find(event);
      tell(side, own, event,
           // A candidate that one run alone has never agrees.
           event != own_[side].event && at != known.end() && at->second && !cuts(own, event));
    }
  }

  template <typename Visit>
  static void each_left(const ProcessLog& log, const std::vector<uint32_t>& events, Visit visit) {
    for (uint32_t i : events) {
      const Event event = log.events[i];
      for (const Slot& slot : log.slots_of(event))
        if (slot.kind != SlotKind::in) visit(i, slot);
    }
  }

  // Was given what wants a gradient, and what it leaves has none: `x.detach()` leaves the same
  // bytes.
  static bool cuts(const ProcessLog& log, uint32_t index) {
    const Event event = log.events[index];
    if (!tells_gradients(event) || (event.flags & kInGraph)) return false;
    for (const Slot& slot : log.slots_of(event))
      if (slot.kind == SlotKind::in && wants_gradient(slot)) return true;
    return false;
  }

  bool same_graph(const ProcessPair& both, const Pair& pair) const {
    return ((log(0, both).events.flags(pair.a) ^ log(1, both).events.flags(pair.b)) & kInGraph) ==
           0;
  }

  // A boundary's text, and the statements that meet it.
  struct Standing {
    Stretch text;
    std::vector<size_t> statements;
  };
  using Boundaries = std::unordered_map<uint32_t, Standing>;

  const Standing* statements_at(int side, const ProcessLog& log, uint32_t event) const {
    const auto at = by_boundary_[side].find(log.events[event].boundary);
    return at == by_boundary_[side].end() ? nullptr : &at->second;
  }

  // `iter(loader)` leaves no tensor: that nothing of it differs says nothing.
  void tell(int side, const ProcessLog& log, uint32_t index, bool agrees) {
    const Standing* at = statements_at(side, log, index);
    if (at == nullptr) return;
    const EventSlots slots = log.slots_of(log.events[index]);
    const bool leaves = std::any_of(slots.begin(), slots.end(),
                                    [](const Slot& slot) { return slot.kind != SlotKind::in; });
    for (size_t i : at->statements) {
      Statement& statement = statements_[side][i];
      // Each of its events has a say, over all steps. That it was measured takes one that left a
      // tensor.
      statement.agrees &= agrees;
      if (!leaves) continue;
      statement.measured = true;
      std::erase_if(statement.unseen, [&](const Stretch& call) { return at->text.holds(call); });
    }
  }

  // The statements of the hunks, and which boundaries stand in each.
  void read_statements(int side, const ProcessLog& log) {
    const Code& code = *programs_.code[side];
    struct Lines {
      uint32_t file;
      LineSpan span;
    };
    std::vector<Lines> lines;
    for (uint32_t h = 0; h < hunks_.size(); ++h) {
      const auto file = programs_.pairs[hunks_[h].pair].file[side];
      if (!file || hunks_[h].lines[side].empty() || !code.files()[*file].tree) continue;
      const CodeFile& in = code.files()[*file];
      const std::vector<TreeItem>& items = in.tree->items();
      for (uint32_t i = 1; i < items.size(); ++i) {
        if (!items[i].named || items[i].extra || items[i].kind == Kind::comment ||
            !is_statement(in.node(i)))
          continue;
        // A function that one program alone has: what it computes stands in its own statements.
        if (items[i].kind == Kind::function_definition && hunks_[h].lines[1 - side].empty())
          continue;
        const LineSpan span = in.statement_lines(i);
        if (!span.meets(hunks_[h].lines[side])) continue;
        lines.push_back({*file, span});
        statements_[side].push_back({h, span, calls_in(in, i, span)});
      }
    }
    // A log's boundaries are texts in `locations`, and numbers of strings in events.
    std::unordered_map<std::string_view, uint32_t> numbers;
    for (uint32_t i = 0; i < log.strings.size(); ++i) numbers[log.strings[i]] = i;
    for (const auto& [boundary, location] : log.locations) {
      const auto file = code.find(location.path);
      const auto number = numbers.find(boundary);
      if (!file || number == numbers.end()) continue;
      const LineSpan at{location.line, std::max(location.line, location.end_line)};
      const Stretch text{{at.first, location.column}, {at.last, location.end_column}};
      for (size_t i = 0; i < lines.size(); ++i) {
        if (lines[i].file != *file || !lines[i].span.meets(at)) continue;
        Standing& standing = by_boundary_[side][number->second];
        standing.text = text;
        standing.statements.push_back(i);
      }
    }
  }

  // `DataLoader(randn(8))` is more than the randn() in it, whatever that left.
  static std::vector<Stretch> calls_in(const CodeFile& file, uint32_t statement,
                                       const LineSpan& lines) {
    std::vector<Stretch> calls;
    const std::vector<TreeItem>& items = file.tree->items();
    const SourceFile& source = *file.source;
    for (uint32_t i = statement; i < items[statement].after; ++i) {
      if (items[i].kind != Kind::call || source.line_of(items[i].start) > lines.last) continue;
      auto place = [&](uint32_t at) { return std::pair(source.line_of(at), source.column_of(at)); };
      calls.push_back({place(items[i].start), place(items[i].end)});
    }
    return calls;
  }

  const Programs& programs_;
  const Alignment& alignment_;
  const std::vector<Hunk>& hunks_;
  std::array<EventRef, 2> own_;
  std::vector<Statement> statements_[2];
  Boundaries by_boundary_[2];
};

}  // namespace

std::vector<HunkStatements> find_agreed(const Programs& programs, const Alignment& alignment,
                                        const Pivot& pivot, const std::vector<Hunk>& hunks) {
  return Measurer(programs, alignment, pivot, hunks).run();
}

}  // namespace opguard
