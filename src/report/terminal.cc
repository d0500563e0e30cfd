// report/terminal.cc: the verdict for people.
#include "report/report.h"

#include <algorithm>

#include "align/judge/pivot_view.h"
#include "align/pair/difference.h"
#include "report/background_text.h"
#include "report/drill_text.h"
#include "report/excerpt.h"
#include "report/proof_text.h"
#include "report/rank_text.h"
#include "report/reasons.h"
#include "report/region.h"
#include "report/rows.h"
#include "report/step_text.h"
#include "report/text.h"
#include "report/unreached_text.h"

namespace opguard {
namespace {

constexpr uint32_t kColumns = 96;      // of a source line, before it is cut around the expression
constexpr size_t kSlotsShown = 6;      // differing slots of one event
constexpr size_t kNeighbours = 5;      // equal events shown before the pivot
constexpr size_t kAroundShown = 8;     // operators around the pivot, the innermost
constexpr size_t kRanksShown = 16;     // a line each
constexpr size_t kUnreachedShown = 5;  // pairs that reach no model value; all by --explain
constexpr size_t kSuspectsShown = 4;   // of the pivot; all by --explain
constexpr size_t kLinesShown = 2;      // of each side of a suspect
constexpr size_t kLeftoversShown = 5;  // events without a partner, per side, by --explain

class Terminal {
 public:
  Terminal(const Report& report, bool colour) : report_(report), colour_(colour) {}

  std::string run() {
    headline();
    if (!report_.verdict.candidates.empty()) pivot("pivot", report_.verdict.candidates.front());
    shares();
    candidates();
    unreached();
    certificate();
    if (report_.explain) pairing();
    rules();
    notes(words(report_.a, report_.b, report_.verdict.notes));
    return std::move(out_);
  }

  // One run: a candidate is two executions of one operator in it, or who left memory and who read
  // it.
  std::string findings(const Findings& all) {
    findings_headline(all);
    const auto& candidates = report_.verdict.candidates;
    const size_t recomputed = all.recompute.findings.size();
    sides_[0] = "first", sides_[1] = "again";
    for (size_t i = 0; i < recomputed; ++i) pivot("finding", candidates[i]);
    sides_[0] = "left by", sides_[1] = "read by";
    for (size_t i = recomputed; i < candidates.size(); ++i)
      overwrite(candidates[i], all.overwritten.findings[i - recomputed]);
    const std::vector<std::string> open = log_notes(report_.a);
    if (!open.empty()) line("");
    notes(open);
    return std::move(out_);
  }

 private:
  // SGR codes: 31 red, 32 green, 33 yellow, 36 cyan, 1 bold, 2 faint.
  std::string paint(const char* code, const std::string& text) const {
    if (!colour_ || text.empty() || *code == 0) return text;
    return "\x1b[" + std::string(code) + "m" + text + "\x1b[0m";
  }

  void line(const std::string& text) { out_ += text + "\n"; }

  std::string why(const Pivot& pivot) const {
    return shown(words(report_.a, report_.b, pivot.why));
  }

  std::string why(const Confirmation& found) const {
    return shown(words(report_.a, report_.b, found.why));
  }

  void headline() {
    const Verdict& verdict = report_.verdict;
    const char* code = verdict.outcome == Outcome::identical  ? "1;32"
                       : verdict.outcome == Outcome::diverged ? "1;31"
                                                              : "1;33";
    const std::string text = headline_of(report_);
    const size_t end = text.find(':');
    line(paint(code, text.substr(0, end)) + shown(text.substr(end)));
  }

  void findings_headline(const Findings& all) {
    const Outcome outcome = report_.verdict.outcome;
    line((outcome == Outcome::identical  ? paint("1;32", "clean")
          : outcome == Outcome::diverged ? paint("1;31", "findings")
                                         : paint("1;33", "inconclusive")) +
         ": " + shown(findings_sentence(all)));
  }

  std::string coordinates(const EventView& view) const {
    const Event& event = *view.event;
    std::string text = std::string(phase_name(event.phase));
    if (event.kind == EventKind::node)
      text += " (" + shown(view.log->text(event.node)) + ")";
    else if (event.kind == EventKind::accumulate)
      text += " (gradient accumulation)";
    text += ", step " + std::to_string(event.step);
    // A step has no micro-batch: all of its own are done.
    if (event.phase != Phase::optimizer)
      text += ", micro-batch " + std::to_string(event.micro_batch);
    text += ", rank " + std::to_string(view.log->rank);
    return text;
  }

  // Where run b counts the step otherwise.
  std::string other_step(const PivotView& both) const {
    if (!both.a || !both.b || both.a.event->step == both.b.event->step) return "";
    return " (step " + std::to_string(both.b.event->step) + " of b)";
  }

  void pivot(const char* title, const Pivot& pivot) {
    const PivotView both = view(report_.a, report_.b, pivot);
    if (!both.either()) return;
    line("");
    line(paint("1", title + std::string(": ") + std::string(kind_name(pivot.kind)) + " in " +
                        shown(both.either().boundary)) +
         ", " + coordinates(both.either()) + other_step(both) +
         (both.slot.empty() ? "" : ", slot " + shown(both.slot)));
    if (!pivot.why.empty()) line("  " + why(pivot));
    if (report_.explain) heuristics(pivot);
    line("");
    source(sides_[0], both.a);
    source(sides_[1], both.b);
    region(pivot);
    differences(both);
    const bool first = &pivot == report_.verdict.candidates.data();
    if (first) {
      numbers();
      confirmation();
      drill();
    }
    surroundings(both);
    neighbours(both);
    if (first) suspects();
  }

  // Where a number that differs can come from: the statement that set it, what that was made of.
  void numbers() {
    const Background* known = background_of(report_, 0);
    if (!known) return;
    for (const Number& number : known->numbers) {
      if (number.ways.empty()) continue;
      line("");
      line("  " + paint("1", number_title(number)));
      size_t width = 0;
      for (const NumberWay& way : number.ways)
        for (const SourceText& step : way.steps) width = std::max(width, place_text(step).size());
      for (const NumberWay& way : number.ways) {
        std::string side = sides_[way.side];
        for (size_t i = 0; i < way.steps.size(); ++i) {
          const bool last = i + 1 == way.steps.size();
          const std::vector<std::string> text = shown_lines(way.steps[i], 1, kColumns);
          const std::string at = place_text(way.steps[i]);
          line("    " + side + "  " + paint("36", at) + std::string(width + 2 - at.size(), ' ') +
               (text.empty() ? "" : text[0]) +
               (last && way.changed ? "  " + paint("1;33", "<- differs") : ""));
          side = " ";
        }
      }
    }
  }

  // What of the sources' difference ran before the pivot, the nearest first.
  void suspects() {
    const Background* known = background_of(report_, 0);
    if (!known || known->suspects.empty()) return;
    line("");
    line("  " + paint("1", "suspects") +
         ": where the sources differ and ran before it, the nearest first");
    const size_t all = known->suspects.size();
    const size_t shown_count = report_.explain ? all : std::min(all, kSuspectsShown);
    for (size_t i = 0; i < shown_count; ++i) {
      const Suspect& suspect = known->suspects[i];
      line("    " + paint("36", place_text(suspect)) + ": " + nearness_text(suspect.nearness));
      for (const std::string& text : shown_lines(suspect.sides[0], kLinesShown, kColumns))
        line("      " + paint("31", "- " + text));
      for (const std::string& text : shown_lines(suspect.sides[1], kLinesShown, kColumns))
        line("      " + paint("32", "+ " + text));
    }
    const size_t left_out = all - shown_count + known->more;
    if (left_out > 0)
      line("    and " + counted(left_out, "more place") + (report_.explain ? "" : " (--explain)"));
  }

  // A further cause, in a line: its nearest suspect.
  void nearest_suspect(size_t candidate) {
    const Background* known = background_of(report_, candidate);
    if (!known || known->suspects.empty()) return;
    const Suspect& suspect = known->suspects.front();
    if (suspect.nearness > Nearness::trail) return;
    line("     suspect: " + place_text(suspect) + ": " + nearness_text(suspect.nearness));
  }

  bool is_cause(size_t candidate) const {
    return report_.proof && std::any_of(report_.proof->causes.begin(), report_.proof->causes.end(),
                                        [&](const Cause& c) { return c.candidate == candidate; });
  }

  // What each run has between values that both hold.
  void region(const Pivot& pivot) {
    const auto spans = region_of(report_.a, report_.b, pivot);
    if (spans[0].empty() && spans[1].empty()) return;
    line("");
    line("  " + paint("1", "region"));
    for (int side : {0, 1})
      line("    " + std::string(sides_[side]) + "  " +
           (spans[side].empty() ? "nothing" : shown(region_text(spans[side]))));
  }

  // What running again found of the pivot.
  void confirmation() {
    if (report_.confirmations.empty()) return;
    const Confirmation& found = report_.confirmations.front();
    if (!found.why && found.tensors.empty()) return;
    line("");
    if (!found.tensors.empty()) {
      line("  " + paint("1", "byte by byte"));
      for (const Difference& difference : found.tensors) {
        std::string text = format_difference(difference);
        for (size_t at = 0, end; at < text.size(); at = end + 1) {
          end = text.find('\n', at);
          line("  " + shown(text.substr(at, end - at)));
        }
      }
      line("");
    }
    line("  " + paint(causal_code(found), causal_text(0)) + ": " + why(found));
    need(0, "  ");
    if (!report_.proof) return;
    if (std::string text = asked_text(*report_.proof); !text.empty()) line("  asked: " + text);
    if (std::string text = repetition_text(report_); !text.empty()) line("  " + shown(text));
  }

  // What one of several causes is to the difference beside the others.
  void need(size_t candidate, const char* indent) {
    if (!report_.proof) return;
    for (const Cause& cause : report_.proof->causes)
      if (std::string text = need_text(*report_.proof, cause);
          cause.candidate == candidate && !text.empty())
        line(indent + text);
  }

  // --drill: the ATen operator inside the pivot.
  void drill() {
    if (!report_.drill) return;
    const Drill& found = *report_.drill;
    line("");
    line("  " + paint("1", "inside it") + ": " + counted(found.count_a, "ATen operator") +
         " in a, " + grouped(found.count_b) + " in b; " + shown(words(found)));
    const std::optional<AtenOperator>* sides[2] = {&found.a, &found.b};
    for (int side : {0, 1}) {
      if (!found.found()) break;
      if (!*sides[side]) {
        line("    " + paint("1", sides_[side]) + "  has no such one");
        continue;
      }
      const AtenOperator& op = **sides[side];
      std::string text = op.name + "(" + op.scalars + ")";
      for (const AtenTensor& t : op.out) text += "  " + aten_text(t);
      for (const AtenTensor& t : op.written) text += "  writes " + aten_text(t);
      line("    " + paint("1", sides_[side]) + "  " + shown(text));
    }
  }

  static std::string aten_text(const AtenTensor& tensor) {
    std::string text = tensor.name + " " + tensor.dtype + "[";
    for (size_t i = 0; i < tensor.shape.size(); ++i)
      text += (i ? ", " : "") + std::to_string(tensor.shape[i]);
    return text + "] " + (tensor.value.empty() ? "unreadable" : tensor.value);
  }

  static const char* causal_code(const Confirmation& found) {
    return !found.causal ? "1;33" : *found.causal ? "1;31" : "1;32";
  }
  std::string causal_text(size_t candidate) const {
    const Confirmation& found = report_.confirmations[candidate];
    if (!found.causal) return "not proven";
    if (!*found.causal) return "proven harmless";
    if (report_.proof)
      for (const Cause& cause : report_.proof->causes)
        if (cause.candidate == candidate && cause.state == ProofState::proven)
          return report_.proof->causes.size() > 1
                     ? "proven, one of " + std::to_string(report_.proof->causes.size()) + " causes"
                     : "proven";
    return "takes part";
  }

  void overwrite(const Pivot& pivot, const Overwrite& found) {
    const PivotView both = view(report_.a, report_.b, pivot);
    const ProcessLog& log = *both.b.log;
    line("");
    line(paint("1",
               std::string("finding: ") + kind_name(pivot.kind) + " in " + shown(both.b.boundary)) +
         ", " + coordinates(both.b) + ", slot " + shown(both.slot));
    line("  " + why(pivot));
    line("");
    source(sides_[0], both.a);
    source(sides_[1], both.b);
    line("");
    line("  " + paint("1", "what differs"));
    const Slot left = log.slots[found.left], read = log.slots[found.read];
    const std::string name = shown(log.text(left.name));
    const size_t width = std::max(name.size(), shown(both.slot).size());
    slot_line(name, width, sides_[0], log, left, read, false);
    slot_line(shown(both.slot), width, sides_[1], log, read, left, false);
    window(found);
  }

  // When it was written, and what ran then.
  void window(const Overwrite& found) {
    constexpr size_t kPartsShown = 8;
    const EventView seen = view(report_.a, found.seen), read = view(report_.a, found.consumer);
    line("");
    line("  " + paint("1", "the window") + ": " + microseconds(found.to_ns - found.from_ns) +
         " from " + shown(place(seen)) + " " + shown(seen.operator_name) +
         (found.seen == found.producer ? " (left it)" : " (found it as it was left)") +
         " in thread " + std::to_string(seen.event->thread) + " to " + shown(place(read)) + " " +
         shown(read.operator_name) + " in thread " + std::to_string(read.event->thread));
    for (size_t i = 0; i < std::min(found.window.size(), kPartsShown); ++i) {
      const WindowPart& part = found.window[i];
      const EventView event = view(report_.a, part.first);
      line("    thread " + std::to_string(part.thread) + "  " + shown(place(event)) + "  " +
           shown(event.operator_name) + (part.count > 1 ? ", " + counted(part.count, "time") : ""));
    }
    if (found.window.size() > kPartsShown)
      line("    and " + counted(found.window.size() - kPartsShown, "more operator"));
    if (found.window.empty()) line("    no other recorded operator ran in it");
  }

  static std::string microseconds(uint64_t ns) { return grouped((ns + 999) / 1000) + " us"; }

  // The call stack as the log has it: the recorded operators it ran inside of.
  void surroundings(const PivotView& both) {
    const EventView& event = both.b ? both.b : both.a;
    const std::vector<uint32_t> around = events_around(*event.log, event.index);
    if (around.empty()) return;
    line("");
    line("  " + paint("1", "inside"));
    const size_t left_out = around.size() - std::min(around.size(), kAroundShown);
    if (left_out > 0) line("    " + counted(left_out, "more operator"));
    for (size_t i = left_out; i < around.size(); ++i)
      line("    " + event_line(*event.log, around[i]));
  }

  void source(const char* side, const EventView& event) {
    if (!event && !event.at_text) {
      line("  " + paint("1", side) + " has no such operator");
      return;
    }
    const Location& at = event.location;
    const std::string file = at.path.empty() ? at.file : at.path;
    if (file.empty()) {
      line("  " + paint("1", side) + " " + shown(event.boundary) + ": its place is not known");
      return;
    }
    const Excerpt excerpt = read_excerpt(at);
    std::string where = shown(file) + ":" + std::to_string(at.line);
    // The runtime alone knows lines only.
    if (!at.text.empty()) where += ":" + std::to_string(at.column + 1);
    if (!at.function.empty() && at.function != "<module>") where += ": in " + shown(at.function);
    line("  " + paint("1", side) + " " + paint("36", where));
    if (!excerpt.line.empty()) {
      const MarkedLine marked = mark_line(excerpt.line, excerpt.from, excerpt.to, kColumns);
      line("      " + marked.line);
      if (marked.length > 0)
        line("      " + std::string(marked.indent, ' ') + paint("1;32", underline(marked.length)));
    }
    if (const Location& inner = event.inner; !inner.file.empty())
      line((event.at_text ? "      shows at: " : "      in it: ") + shown(inner.file) + ":" +
           std::to_string(inner.line) + "  " + shorten(shown(inner.text)));
  }

  void slot_line(const std::string& name, size_t width, const char* side, const ProcessLog& log,
                 const std::optional<Slot>& slot, const std::optional<Slot>& other,
                 bool shapes_differ) {
    std::string text = "    " + name + std::string(width - name.size() + 2, ' ') + side + "  ";
    if (!slot) {
      line(text + "absent");
      return;
    }
    const bool values_differ = !other || slot->value != other->value;
    text += paint(shapes_differ ? "31" : "", shown(shape_text(log, *slot))) + "  ";
    text += paint(values_differ ? "31" : "", fingerprint_text(*slot));
    line(text);
  }

  // The outputs of an event that has no counterpart to be compared with.
  void results(const char* side, const EventView& event) {
    if (!event) return;
    const ProcessLog& log = *event.log;
    size_t count = 0;
    for (uint64_t i = event.event->first_slot;
         i < event.event->first_slot + event.event->slot_count && count < kSlotsShown; ++i) {
      const Slot& slot = log.slots[i];
      if (slot.kind == SlotKind::in) continue;
      const std::string name = shown(log.text(slot.name));
      slot_line(name, name.size(), side, log, slot, slot, false);
      ++count;
    }
    const std::string& scalars = log.text(event.event->scalars);
    if (!scalars.empty()) line("    arguments  " + std::string(side) + "  " + shorten(scalars));
  }

  static std::string shorten(const std::string& text) {
    const MarkedLine cut = mark_line(text, 0, 0, kColumns);
    return cut.line;
  }

  void differences(const PivotView& both) {
    line("");
    if (!both.comparable) {
      line("  " + paint("1", "what it left"));
      results(sides_[0], both.a);
      results(sides_[1], both.b);
      return;
    }
    const EventView &a = both.a, &b = both.b;
    const SlotDifferences slots = slot_differences(*a.log, *a.event, *b.log, *b.event);
    line("  " + paint("1", "what differs"));
    size_t width = 0;
    const size_t count = std::min(slots.slots.size(), kSlotsShown);
    auto name = [&](const SlotPair& slot) {
      return slot.b ? shown(b.log->text(slot.b->name)) : shown(a.log->text(slot.a->name));
    };
    for (size_t i = 0; i < count; ++i) width = std::max(width, name(slots.slots[i]).size());
    for (size_t i = 0; i < count; ++i) {
      const SlotPair& slot = slots.slots[i];
      const bool shapes_differ =
          slot.a && slot.b && shape_text(*a.log, *slot.a) != shape_text(*b.log, *slot.b);
      slot_line(name(slot), width, sides_[0], *a.log, slot.a, slot.b, shapes_differ);
      slot_line("", width, sides_[1], *b.log, slot.b, slot.a, shapes_differ);
      // og1 adds the rows' own hashes in M: docs/record-format.md.
      if (slot.a && slot.b && !shapes_differ && slot.a->value.m == slot.b->value.m &&
          slot.a->value.h != slot.b->value.h)
        line("    " + std::string(width + 4 + std::string(sides_[0]).size(), ' ') +
             "the same rows in another order");
      if (slot.a && slot.b && !shapes_differ && slot.a->value == slot.b->value &&
          slot.a->flat != slot.b->flat)
        line("    " + std::string(width + 4 + std::string(sides_[0]).size(), ' ') +
             "the digest as one row differs alone: a log is not what was written");
    }
    if (slots.slots.size() > count)
      line("    and " + counted(slots.slots.size() - count, "more slot"));
    scalars("arguments", a.log->text(a.event->scalars), b.log->text(b.event->scalars));
    scalars("results", a.log->text(a.event->results), b.log->text(b.event->results));
    raised(a, b);
    if (slots.equal_inputs > 0)
      line("    equal: " + counted(slots.equal_inputs, "tensor input") +
           (slots.equal_outputs > 0 ? ", " + counted(slots.equal_outputs, "output") : ""));
  }

  void raised(const EventView& a, const EventView& b) {
    const bool in_a = a.event->flags & kRaised, in_b = b.event->flags & kRaised;
    if (in_a != in_b)
      line("    it raised an exception in " + std::string(sides_[in_a ? 0 : 1]) + " only");
  }

  // Both sides' items, the differing ones underlined.
  void scalars(const std::string& title, const std::string& a, const std::string& b) {
    if (a == b) return;
    const auto [items_a, items_b] = scalar_differences(a, b);
    for (const auto& [side, items] :
         {std::pair(sides_[0], &items_a), std::pair(sides_[1], &items_b)}) {
      std::string text, marks;
      for (const ScalarItem& item : *items) {
        if (!text.empty()) text += ", ", marks += "  ";
        const std::string item_text = shown(item.text);
        const auto chars = shown_chars(item.text);
        const uint32_t width = width_of(chars, 0, chars.size());
        text += paint(item.differs ? "31" : "", item_text);
        marks += item.differs ? underline(width) : std::string(width, ' ');
      }
      const bool first = side == sides_[0];
      const std::string indent = "    " + (first ? title : std::string(title.size(), ' ')) + "  ";
      line(indent + side + "  " + (items->empty() ? "none" : text));
      marks.erase(marks.find_last_not_of(' ') + 1);
      if (!marks.empty())
        line(std::string(indent.size() + 2 + std::string(side).size(), ' ') + paint("1;32", marks));
    }
  }

  // The alignment's entry for the process of the pivot.
  const ProcessPair* process_of(const Pivot& pivot) const {
    for (const ProcessPair& process : report_.alignment.processes)
      if ((pivot.a.process >= 0 && process.a == pivot.a.process) ||
          (pivot.a.process < 0 && process.b == pivot.b.process))
        return &process;
    return nullptr;
  }

  void neighbours(const PivotView& both) {
    const Pivot& pivot = report_.verdict.candidates.front();
    const ProcessPair* process = process_of(pivot);
    if (!process || process->a < 0 || process->b < 0) return;
    std::vector<const Pair*> equal;
    for (const Pair& pair : process->pairs) {
      const bool before = both.a ? pair.a < both.a.index : pair.b < both.b.index;
      if (before && pair.equality == Equality::equal) equal.push_back(&pair);
    }
    if (equal.empty()) return;
    line("");
    line("  " + paint("1", "before it, equal in both runs"));
    for (size_t i = equal.size() - std::min(equal.size(), kNeighbours); i < equal.size(); ++i)
      line("    " + event_line(report_.b.processes[process->b], equal[i]->b));
  }

  static std::string event_line(const ProcessLog& log, uint32_t index) {
    const EventView event = view(log, index);
    std::string text = shown(place(event)) + "  " + shown(event.operator_name);
    if (event.event->kind == EventKind::node)
      text += "  (" + shown(log.text(event.event->node)) + ")";
    else if (event.event->phase != Phase::forward)
      text += "  (" + std::string(phase_name(event.event->phase)) + ")";
    return text;
  }

  // Where it began and how it came to the other ranks.
  void shares() {
    const std::vector<RankLine> lines = rank_lines(report_);
    if (lines.empty()) return;
    line("");
    line(paint("1", "across ranks"));
    for (size_t i = 0; i < std::min(lines.size(), kRanksShown); ++i)
      line("  " + ranks_text(lines[i].ranks) + ": " + lines[i].text);
    if (lines.size() > kRanksShown)
      line("  and " + std::to_string(lines.size() - kRanksShown) + " more");
  }

  void candidates() {
    const auto& all = report_.verdict.candidates;
    if (all.size() < 2) return;
    line("");
    line(paint("1", "other candidates, in order"));
    for (size_t i = 1; i < all.size(); ++i) {
      const PivotView both = view(report_.a, report_.b, all[i]);
      if (!both.either()) continue;
      std::string text = "  " + std::to_string(i + 1) + ". " + kind_name(all[i].kind) + "  " +
                         shown(place(both.either())) + "  " + shown(both.either().operator_name);
      if (both.either().event->phase != Phase::forward)
        text += " (" + std::string(phase_name(both.either().event->phase)) + ")";
      line(text + ": " + why(all[i]));
      if (i < report_.confirmations.size() && report_.confirmations[i].why) {
        const Confirmation& found = report_.confirmations[i];
        line("     " + paint(causal_code(found), causal_text(i)) + ": " + why(found));
        need(i, "     ");
      }
      if (report_.explain || is_cause(i)) nearest_suspect(i);
      if (report_.explain) differences(both);
    }
  }

  // Runs may differ where nothing they are judged by depends on it: that is not hidden.
  void unreached() {
    const size_t count = report_.verdict.unreached.size();
    if (count == 0) return;
    line("");
    line(paint("1", "pairs that differ and reach no model value"));
    const size_t most = report_.explain ? count : kUnreachedShown;
    for (const std::string& text : unreached_lines(report_, most)) line("  " + text);
    if (count > most) line("  and " + counted(count - most, "more pair") + " (--explain)");
  }

  void certificate() {
    const Alignment& alignment = report_.alignment;
    line("");
    std::string text = grouped(alignment.certified_prefix) + " of " +
                       counted(alignment.pairs, "pair") + " certified equal";
    if (const Pair* last = last_certified(report_.a, alignment)) {
      const ProcessPair& process = alignment.processes[last->process];
      const EventView event = view(report_.a.processes[process.a], last->a);
      text += ", up to step " + std::to_string(event.event->step) + ", " +
              phase_name(event.event->phase) + ", " + shown(place(event)) + " (rank " +
              std::to_string(event.log->rank) + ")";
    }
    line(text);
    if (report_.verdict.candidates.empty() && report_.verdict.unreached.empty() &&
        alignment.unequal > 0)
      first_unequal();
    if (alignment.hidden + alignment.following > 0)
      line("hidden: " + counted(alignment.hidden, "pair") + " by rules" +
           (alignment.following > 0
                ? ", " + grouped(alignment.following) + " more that read what rules hide"
                : ""));
    if (alignment.processes.size() > 1) ranks();
    if (report_.verdict.harmless > 0)
      line("off the trail: " + counted(report_.verdict.harmless, "differing event") +
           " before the pivot that were not met on the way back to it");
    for (const std::string& text : step_sentences(alignment)) line("steps: " + text);
    uint64_t only_a = 0, only_b = 0;
    for (const ProcessPair& process : alignment.processes) {
      only_a += process.only_a.size();
      only_b += process.only_b.size();
    }
    if (only_a + only_b > 0)
      line("without a partner: " + counted(only_a, "event") + " of a, " + counted(only_b, "event") +
           " of b");
    const Coverage& coverage = report_.coverage;
    if (coverage.activities > 0) {
      // Rounded down, so that 100.0% is said of all and nothing less.
      const uint64_t permille = coverage.attributed * 1000 / coverage.activities;
      line("coverage: " + std::to_string(permille / 10) + "." + std::to_string(permille % 10) +
           "% of the device work belongs to an instrumented operator, " +
           counted(coverage.unmatched_sites, "unmatched site"));
    }
  }

  // Generators seeded unlike come last: they differ from the first record on.
  const Pair* first_unequal_pair() const {
    const Pair* state = nullptr;
    for (const Pair* pair : pairs_in_order(report_.a, report_.alignment)) {
      if (pair->equality == Equality::equal || pair->equality == Equality::hidden) continue;
      if (!passed_over(report_.a, report_.alignment, *pair)) return pair;
      if (!state) state = pair;
    }
    return state;
  }

  // Runs may differ where no model value depends on it: that is not hidden.
  void first_unequal() {
    const Pair* pair = first_unequal_pair();
    if (!pair) return;
    const ProcessPair& process = report_.alignment.processes[pair->process];
    const EventView a = view(report_.a.processes[process.a], pair->a),
                    b = view(report_.b.processes[process.b], pair->b);
    std::string text = counted(report_.alignment.unequal, "pair") +
                       (report_.alignment.unequal == 1 ? " differs: " : " differ, the first: ");
    const bool states = b.event->kind == EventKind::state;
    text +=
        states ? "the states of random generators" : shown(place(b)) + " " + shown(b.operator_name);
    text += ", " + coordinates(b);
    const SlotDifferences slots = slot_differences(*a.log, *a.event, *b.log, *b.event);
    if (!slots.slots.empty()) {
      size_t named = 0;
      for (const SlotPair& slot : slots.slots) {
        text += named++ > 0 ? ", " : states && slots.slots.size() > 1 ? ", slots " : ", slot ";
        text += shown(slot.b ? b.log->text(slot.b->name) : a.log->text(slot.a->name));
        if (!states) break;
      }
    }
    line(text);
  }

  // Of several ranks each gets a line: where it first differs.
  void ranks() {
    size_t count = 0;
    for (const Lane& lane : lanes_of(report_)) {
      if (++count > kRanksShown) continue;
      uint64_t pairs = 0, unequal = 0, alone = 0;
      const LaneRow* first = nullptr;
      for (const LaneRow& row : lane.rows) {
        pairs += row.paired();
        unequal += row.paired() && row.differs();
        alone += !row.paired();
        if (row.differs() &&
            (!first || (is_state(report_, lane, *first) && !is_state(report_, lane, row))))
          first = &row;
      }
      std::string text = "rank " + std::to_string(lane.rank);
      if (lane.ordinal > 0) text += ", process " + std::to_string(lane.ordinal + 1);
      text += ": " + counted(pairs, "pair") + ", ";
      text += unequal == 0 ? "all equal" : grouped(unequal) + " unequal";
      if (alone > 0) text += ", " + counted(alone, "event") + " without a partner";
      if (first) {
        const bool in_b = first->b != kNone;
        const EventView event = in_b ? view(report_.b.processes[lane.b], first->b)
                                     : view(report_.a.processes[lane.a], first->a);
        text += "; first " + shown(place(event)) + " " + shown(event.operator_name) + ", step " +
                std::to_string(event.event->step) + ", " + phase_name(event.event->phase);
      }
      line(text);
    }
    if (count > kRanksShown) line("and " + std::to_string(count - kRanksShown) + " more");
  }

  void leftovers(const char* side, const ProcessLog& log, const std::vector<uint32_t>& events) {
    for (size_t i = 0; i < std::min(events.size(), kLeftoversShown); ++i)
      line("    only in " + std::string(side) + ": " + event_line(log, events[i]) + ", step " +
           std::to_string(log.events[events[i]].step));
    if (events.size() > kLeftoversShown)
      line("    only in " + std::string(side) + ": " +
           counted(events.size() - kLeftoversShown, "more event"));
  }

  // --explain: what the judgement argued on its way to a candidate.
  void heuristics(const Pivot& pivot) {
    for (const HeuristicText& text : kHeuristics)
      if (pivot.heuristics.has(text.heuristic))
        line("  by " + std::string(text.name) + ": " + std::string(text.says));
  }

  // --explain: how the events were paired.
  void pairing() {
    line("");
    line(paint("1", "pairing"));
    for (const ProcessPair& process : report_.alignment.processes) {
      const bool in_a = process.a >= 0, in_b = process.b >= 0;
      const ProcessLog& log =
          in_a ? report_.a.processes[process.a] : report_.b.processes[process.b];
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
      line(text);
      if (in_a) leftovers("a", report_.a.processes[process.a], process.only_a);
      if (in_b) leftovers("b", report_.b.processes[process.b], process.only_b);
    }
  }

  void rules() {
    const std::vector<std::string> sentences = rule_sentences(report_);
    if (sentences.empty()) return;
    line("");
    line(paint("1", "rules"));
    for (const std::string& sentence : sentences) line("  " + shown(sentence));
  }

  void notes(std::vector<std::string> all) {
    for (const std::string& note : log_notes(report_.a, report_.b)) all.push_back(note);
    for (const std::string& setting : words(report_.settings)) all.push_back(setting);
    for (const std::string& note : all) line(paint("33", "note") + ": " + shown(note));
  }

  const Report& report_;
  const bool colour_;
  const char* sides_[2] = {"a", "b"};
  std::string out_;
};

void add_log_notes(const char* side, const Run& run, std::vector<std::string>& notes) {
  for (const ProcessLog& log : run.processes) {
    const std::string where =
        std::string(side) + ", rank " + std::to_string(log.rank) + " (" + log.path + ")";
    if (log.lost > 0)
      notes.push_back(where + ": " + counted(log.lost, "record") +
                      (log.lost == 1 ? " was" : " were") +
                      " lost; nothing is certified across a hole");
    if (!log.damage.empty()) {
      notes.push_back(where + ": " + log.damage);
    } else if (!log.closed) {
      notes.push_back(where + ": the log was not closed; what it holds is compared");
    }
  }
}

}  // namespace

Findings check_single(const Run& run) {
  Findings findings{check_recompute(run), check_overwritten(run), {}};
  for (const ProcessLog& process : run.processes) {
    const auto mode = process.settings.find("mode");
    if (mode != process.settings.end() && mode->second != "full")
      findings.blind_mode = mode->second;
  }
  return findings;
}

Verdict findings_verdict(const Findings& findings) {
  Verdict verdict;
  verdict.outcome = !findings.empty()  ? Outcome::diverged
                    : findings.clean() ? Outcome::identical
                                       : Outcome::inconclusive;
  for (const RecomputeFinding& finding : findings.recompute.findings) {
    Pivot pivot{finding.kind, finding.forward, finding.recompute, finding.slot, {finding.why}};
    if (finding.times > 1)
      pivot.why.push_back({.kind = ReasonKind::times, .numbers = {finding.times}});
    verdict.candidates.push_back(std::move(pivot));
  }
  for (const Overwrite& finding : findings.overwritten.findings)
    verdict.candidates.push_back(
        {PivotKind::race, finding.producer, finding.consumer, finding.read, explain(finding)});
  return verdict;
}

std::string findings_sentence(const Findings& findings) {
  const auto& [recompute, overwritten, blind_mode] = findings;
  std::string text;
  const std::string compared =
      grouped(recompute.compared) + " of " + counted(recompute.recomputed, "recomputed operator");
  if (recompute.recomputed == 0)
    text = "no operator is recomputed in this run";
  else if (recompute.findings.empty())
    text = "every recomputation gives what its forward gave, " + compared + " compared";
  else
    text = counted(recompute.findings.size(), "operator") + " recomputed unlike in the forward, " +
           compared + " compared";
  const std::string held = grouped(overwritten.compared) + " of " +
                           counted(overwritten.reads, "input") +
                           " held against what was left there";
  if (!blind_mode.empty())
    text +=
        "; overwritten memory shows only in a log of mode full (opguard run --mode full), this one "
        "is of mode " +
        blind_mode;
  else if (overwritten.reads == 0)
    text += "; what was overwritten is not known: the log numbers no memory";
  else if (overwritten.findings.empty())
    text += "; no input was overwritten, " + held;
  else
    text += "; " + counted(overwritten.findings.size(), "operator") + " read overwritten memory, " +
            held;
  return text;
}

std::vector<std::string> rule_sentences(const Report& report) {
  std::vector<std::string> sentences;
  if (!report.hidden) return sentences;
  for (size_t i = 0; i < report.hidden->rules().size(); ++i) {
    const Rule& rule = report.hidden->rules()[i];
    const RuleUse& use = report.hidden->uses()[i];
    std::string text = "'" + rule.text + "' (" + rule.place + ")";
    if (use.matched == 0)
      text += " names nothing in these runs: it can go";
    else if (use.hidden == 0)
      text += " hides nothing: the " + counted(use.matched, "record") + " it names " +
              (use.matched == 1 ? "agrees" : "agree");
    else
      text +=
          " hides " + counted(use.hidden, "differing record") +
          (use.model_values > 0 ? ", " + counted(use.model_values, "model value") + " among them"
                                : "");
    sentences.push_back(text + "; why: " + rule.why);
  }
  return sentences;
}

std::vector<std::string> log_notes(const Run& a, const Run& b) {
  std::vector<std::string> notes;
  add_log_notes("a", a, notes);
  add_log_notes("b", b, notes);
  return notes;
}

std::vector<std::string> log_notes(const Run& run) {
  std::vector<std::string> notes;
  add_log_notes("the run", run, notes);
  return notes;
}

std::string format_findings(const Run& run, const Findings& findings, bool colour) {
  const Verdict verdict = findings_verdict(findings);
  const Alignment alignment;
  const Report report{run, run, alignment, verdict, {}};
  return Terminal(report, colour).findings(findings);
}

std::string headline_of(const Report& report) {
  const Verdict& verdict = report.verdict;
  std::string text = outcome_name(verdict.outcome);
  const bool told = report.proof && report.proof->state != ProofState::none;
  if (told) text += std::string(", ") + proof_name(report.proof->state);
  text += ": " + words(report.a, report.b, verdict.why);
  if (told && report.proof->state != ProofState::proven)
    text += " (" + words(report.a, report.b, report.proof->why) + ")";
  return text;
}

std::string format_terminal(const Report& report, bool colour) {
  return Terminal(report, colour).run();
}

}  // namespace opguard
