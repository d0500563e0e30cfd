// Where a candidate stands: its statement, its function, and the functions on the trail to it.
//
//   candidate  F.dropout in model.py:31, of Block.forward
//   statements model.py:31           functions  Block.forward
//   trail      Net.forward, which called it; embed, which made what it read
//
// Counterexample: an event that only one run has. On the other side there is no statement; what ran
// is known up to the partner of the last event that stood before it.
//
// The cost: once over the events behind the candidate for those around it, and back until the
// makers of its inputs are found.
#include "suspects/stand.h"

#include <algorithm>

namespace opguard {
namespace {

constexpr size_t kCallsDecided = 4;   // outward: a call may stand under a condition as well
constexpr size_t kRanBefore = 3;      // functions that ran right before it
constexpr uint32_t kLookedBack = 64;  // events

// It read what no recorded operator made: plain Python did, on its way there.
bool nobody_made(const Pivot& pivot) {
  return pivot.kind == PivotKind::input &&
         std::any_of(pivot.why.begin(), pivot.why.end(), [](const Reason& reason) {
           return reason.kind == ReasonKind::made_by_nobody;
         });
}

// The event of the candidate on one side. Where it has none, the last of it that is known to have
// run before: the partner of what the other side ran before.
EventRef until(const Alignment& alignment, const Pivot& pivot, int side) {
  const EventRef own = side == 0 ? pivot.a : pivot.b, other = side == 0 ? pivot.b : pivot.a;
  if (own.process >= 0 || other.process < 0) return own;
  EventRef last;
  for (const ProcessPair& both : alignment.processes) {
    if ((side == 0 ? both.b : both.a) != other.process) continue;
    for (const Pair& pair : both.pairs) {
      const uint32_t there = side == 0 ? pair.b : pair.a, here = side == 0 ? pair.a : pair.b;
      if (there < other.event && (last.process < 0 || here > last.event))
        last = {side == 0 ? both.a : both.b, here};
    }
  }
  return last;
}

}  // namespace

Stand::Stand(const Programs& programs, const Alignment& alignment, const Pivot& pivot, int side)
    : programs_(programs),
      side_(side),
      code_(*programs.code[side]),
      run_(*programs.runs[side]),
      ran_(code_, run_, until(alignment, pivot, side)) {
  const EventRef& event = side == 0 ? pivot.a : pivot.b;
  ref_ = event;
  if (event.process >= 0) {
    place(event, statements_, functions_);
    if (const auto at = expression(view(run_, event).location)) expression_ = at;
    if (pivot.call[side]) place(*pivot.call[side], statements_, functions_);
    read_stack(event);
    if (nobody_made(pivot)) read_before(event);
  }
  if (pivot.text[side]) place(*pivot.text[side], statements_, functions_);
  // Each place of the region once, however often it ran.
  std::set<std::pair<int32_t, uint32_t>> placed;
  for (const EventRef& ref : pivot.region[side]) {
    const uint32_t boundary = run_.processes[ref.process].events[ref.event].boundary;
    if (placed.emplace(ref.process, boundary).second) place(ref, statements_, functions_);
  }
}

bool Stand::ran(const Hunk& hunk) const {
  const auto file = programs_.pairs[hunk.pair].file[side_];
  return file && ran_.lines(*file, hunk.lines[side_]);
}

Nearness Stand::nearness(const Hunk& hunk) const {
  const auto file = programs_.pairs[hunk.pair].file[side_];
  const LineSpan& lines = hunk.lines[side_];
  if (!file || lines.empty()) return Nearness::earlier;
  for (const auto& [at, span] : statements_)
    if (at == *file && span.meets(lines)) return Nearness::statement;
  // A hunk's first line decides whose it is.
  const uint32_t scope = code_.files()[*file].scope_at(lines.first);
  if (functions_.contains({*file, scope})) return Nearness::function;
  if (trail_.contains({*file, scope})) return Nearness::trail;
  for (const auto& [at, span] : statements_)
    if (at == *file) return Nearness::file;
  return Nearness::earlier;
}

TrailFound Stand::follow(const std::vector<NameUse>& uses, size_t depth,
                         const std::vector<Hunk>& ran) {
  const TrailQuestion question{code_, *programs_.definitions[side_], ran_, side_, programs_.pairs,
                               ran,   programs_.texts.texts};
  TrailFound found = follow_trail(question, uses, depth);
  trail_.insert(found.scopes.begin(), found.scopes.end());
  return found;
}

std::vector<NameUse> Stand::uses(PivotKind kind, const EventView& event) const {
  if (!expression_) return {};
  const auto [file, item] = *expression_;
  const Node node = code_.files()[file].node(item);
  // All that a matched operator reads agrees: what is left is the operator itself.
  if (kind == PivotKind::value) {
    if (node.kind() != Kind::call) return {};
    const Node function = node.field(Field::function);
    std::vector<NameUse> own = uses_in(file, function.index());
    // A tensor's method: the tensor is an input, and agrees.
    // Of `x.norm(2).mul` only `mul` is left: the last name.
    if (reads_self(event) && !own.empty()) own.erase(own.begin(), own.end() - 1);
    return own;
  }
  return uses_in(file, item);
}

std::vector<NameUse> Stand::conditions() const {
  std::vector<NameUse> all;
  if (!expression_) return all;
  Definition at;
  at.file = expression_->first, at.item = expression_->second;
  std::vector<Definition> decided = {at};
  for (const FunctionCall* call : calls_to(run_, ref_)) {
    const auto found = expression(call->at);
    if (!found || decided.size() > kCallsDecided) continue;
    at.file = found->first, at.item = found->second;
    decided.push_back(at);
  }
  for (const Definition& each : decided)
    for (const uint32_t condition : programs_.definitions[side_]->decided_by(each))
      for (NameUse& use : uses_in(each.file, condition)) all.push_back(std::move(use));
  return all;
}

std::vector<NameUse> Stand::uses(const std::string& item_name,
                                 std::optional<TrailStep>& argument) const {
  // "group0.lr" -> "lr", "arg1[3]" -> "arg1".
  const std::string key = item_name.substr(item_name.rfind('.') + 1);
  const std::string base = key.substr(0, key.find('['));
  std::vector<NameUse> named = {{base, false, false, 0, 0}};
  if (!expression_) return named;
  const auto [file, item] = *expression_;
  const CodeFile& code = code_.files()[file];
  const Node node = code.node(item);
  // `x * 0.5` is x's method, given 0.5.
  if (node.kind() == Kind::binary_operator && item_name == "arg0") {
    const Node right = node.field(Field::right);
    argument = TrailStep{file, code.lines(right.index()), std::string(code.text(right.index()))};
    return uses_in(file, right.index());
  }
  if (node.kind() != Kind::call) return uses_in(file, item);
  const std::string first = item_name.substr(0, item_name.find_first_of(".["));
  size_t position = 0;
  for (const Node& given : node.field(Field::arguments).named_children()) {
    const bool keyword = given.kind() == Kind::keyword_argument;
    // The recorder names an argument by its keyword, or "arg" and its position.
    const bool meant = keyword ? code.text(given.field(Field::name).index()) == first
                               : "arg" + std::to_string(position) == first;
    position += !keyword;
    if (!meant) continue;
    const LineSpan lines = code.lines(given.index());
    argument = TrailStep{file, lines, std::string(code.text(given.index()))};
    const Node value = keyword ? given.field(Field::value) : given;
    return uses_in(file, value.index());
  }
  return named;
}

SourceText Stand::text_of(const TrailStep& step) const {
  const SourceFile& source = *code_.files()[step.file].source;
  return {source.package, source.name, source.path, step.lines, {step.text}};
}

std::vector<NameUse> Stand::uses_in(uint32_t file, uint32_t item) const {
  return programs_.definitions[side_]->uses_in(file, item);
}

bool Stand::reads_self(const EventView& event) {
  for (const Slot& slot : event.log->slots_of(*event.event)) {
    if (slot.kind == SlotKind::in && event.log->text(slot.name) == "self") return true;
  }
  return false;
}

std::optional<std::pair<uint32_t, uint32_t>> Stand::expression(const Location& at) const {
  const auto file = code_.find(at.path);
  if (!file || !code_.files()[*file].tree || at.line == 0) return {};
  const auto item =
      code_.files()[*file].expression_at(at.line, at.column, at.end_line, at.end_column);
  if (!item) return {};
  return std::pair(*file, *item);
}

void Stand::place(const EventRef& ref, Places& statements, Scopes& functions) const {
  place(view(run_, ref).location, statements, functions);
}

void Stand::place(const Location& at, Places& statements, Scopes& functions) const {
  const auto file = code_.find(at.path);
  if (!file || at.line == 0) return;
  const CodeFile& code = code_.files()[*file];
  LineSpan lines{at.line, std::max(at.line, at.end_line)};
  if (const auto found = expression(at))
    lines = code.statement_lines(code.statement_of(found->second));
  statements.emplace_back(*file, lines);
  functions.emplace(*file, code.scope_at(at.line));
}

void Stand::read_before(const EventRef& ref) {
  const ProcessLog& log = run_.processes[ref.process];
  const uint32_t thread = log.events.thread(ref.event);
  Places unused;
  Scopes before = functions_;
  const size_t most = before.size() + kRanBefore;
  for (uint32_t i = ref.event; i-- > 0 && before.size() < most && ref.event - i < kLookedBack;)
    if (log.events.thread(i) == thread) place({ref.process, i}, unused, before);
  functions_ = std::move(before);
}

// An event around it ends later, so it stands behind it and began before.
void Stand::read_stack(const EventRef& ref) {
  const ProcessLog& log = run_.processes[ref.process];
  const Event own = log.events[ref.event];
  Places unused;
  for (const FunctionCall* call : calls_to(run_, ref)) place(call->at, unused, trail_);
  for (uint32_t i = ref.event + 1; i < log.events.size(); ++i)
    if (log.events.thread(i) == own.thread && log.events[i].begin <= ref.event)
      place({ref.process, i}, unused, trail_);
  std::set<std::pair<uint64_t, uint64_t>> wanted;
  for (const Slot& slot : log.slots_of(own))
    if (slot.kind == SlotKind::in && !(slot.flags & kUnreadable))
      wanted.emplace(slot.value.h, slot.value.m);
  // Each value's last maker: a value is struck out as it is found.
  for (uint32_t i = ref.event; i-- > 0 && !wanted.empty();) {
    const Event event = log.events[i];
    for (const Slot& slot : log.slots_of(event)) {
      if (slot.kind != SlotKind::in && wanted.erase({slot.value.h, slot.value.m}) > 0)
        place({ref.process, i}, unused, trail_);
    }
  }
}

}  // namespace opguard
