#include "suspects/suspects.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "align/judge/pivot_view.h"
#include "align/pair/difference.h"
#include "patcher/line_diff.h"
#include "suspects/trail.h"

namespace opguard {
namespace {

constexpr size_t kNumberDepth = 10;  // statements from a number back to what made it
constexpr size_t kValueDepth = 4;    // from another value
constexpr size_t kMostLines = 6;     // of a hunk, shown
constexpr size_t kMostWays = 3;      // of a number
constexpr size_t kMostNumbers = 4;   // of a candidate
constexpr size_t kCallsDecided = 4;  // outward: a call may stand under a condition as well

// What all candidates share.
struct Programs {
  const ProgramTexts& texts;
  const Run* runs[2];
  const Code* code[2];
  const Definitions* definitions[2];
  const std::vector<FilePair>& pairs;
  const std::vector<Hunk>& hunks;
};

// "group0.lr=0.1, nesterov=False" -> {group0.lr: 0.1, nesterov: False}
std::map<std::string, std::string> items_of(const std::string& scalars) {
  std::map<std::string, std::string> items;
  for (const std::string& item : split_scalars(scalars)) {
    const size_t equals = item.find('=');
    if (equals != std::string::npos) items[item.substr(0, equals)] = item.substr(equals + 1);
  }
  return items;
}

std::vector<Number> differing_numbers(const PivotView& both) {
  std::vector<Number> numbers;
  if (!both.comparable) return numbers;
  const auto a = items_of(both.a.log->text(both.a.event->scalars)),
             b = items_of(both.b.log->text(both.b.event->scalars));
  auto value = [](const std::map<std::string, std::string>& items, const std::string& name) {
    const auto at = items.find(name);
    return at == items.end() ? std::string() : at->second;
  };
  std::set<std::string> names;
  for (const auto* items : {&a, &b})
    for (const auto& [name, text] : *items)
      if (value(a, name) != value(b, name)) names.insert(name);
  for (const std::string& name : names)
    if (numbers.size() < kMostNumbers)
      numbers.push_back({name, {value(a, name), value(b, name)}, {}});
  return numbers;
}

// The event of the candidate on one side; where it has none, the last of it that is known to have
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

// One candidate on one side: where it stands, and what led there.
class Stand {
 public:
  Stand(const Programs& programs, const Alignment& alignment, const Pivot& pivot, int side)
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
    }
    if (pivot.text[side]) place(*pivot.text[side], statements_, functions_);
    // Each place of the region once, however often it ran.
    std::set<std::pair<int32_t, uint32_t>> placed;
    for (const EventRef& ref : pivot.region[side]) {
      const uint32_t boundary = run_.processes[ref.process].events[ref.event].boundary;
      if (placed.emplace(ref.process, boundary).second) place(ref, statements_, functions_);
    }
  }

  const Ran& ran() const { return ran_; }
  bool known() const { return expression_.has_value(); }

  bool ran(const Hunk& hunk) const {
    const auto file = programs_.pairs[hunk.pair].file[side_];
    return file && ran_.lines(*file, hunk.lines[side_]);
  }

  Nearness nearness(const Hunk& hunk) const {
    const auto file = programs_.pairs[hunk.pair].file[side_];
    const LineSpan& lines = hunk.lines[side_];
    if (!file || lines.empty()) return Nearness::earlier;
    for (const auto& [at, span] : statements_)
      if (at == *file && span.meets(lines)) return Nearness::statement;
    const uint32_t scope = code_.files()[*file].scope_at(lines.first);
    if (functions_.contains({*file, scope})) return Nearness::function;
    if (trail_.contains({*file, scope})) return Nearness::trail;
    for (const auto& [at, span] : statements_)
      if (at == *file) return Nearness::file;
    return Nearness::earlier;
  }

  TrailFound follow(const std::vector<NameUse>& uses, size_t depth, const std::vector<Hunk>& ran) {
    const TrailQuestion question{code_, *programs_.definitions[side_], ran_, side_, programs_.pairs,
                                 ran,   programs_.texts.texts};
    TrailFound found = follow_trail(question, uses, depth);
    trail_.insert(found.scopes.begin(), found.scopes.end());
    return found;
  }

  // What may give a candidate of this kind its value.
  std::vector<NameUse> uses(PivotKind kind, const EventView& event) const {
    if (!expression_) return {};
    const auto [file, item] = *expression_;
    const Node node = code_.files()[file].node(item);
    // All that a matched operator reads agrees: what is left is the operator itself.
    if (kind == PivotKind::value) {
      if (node.kind() != Kind::call) return {};
      const Node function = node.field(Field::function);
      std::vector<NameUse> own = uses_in(file, function.index());
      // A tensor's method: the tensor is an input, and agrees.
      if (reads_self(event) && !own.empty()) own.erase(own.begin(), own.end() - 1);
      return own;
    }
    std::vector<NameUse> all = uses_in(file, item);
    if (kind == PivotKind::structure) {
      Definition at;
      at.file = file, at.item = item;
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
    }
    return all;
  }

  // Of an item of its scalars: the argument that carries it, or whatever has its name.
  std::vector<NameUse> uses(const std::string& item_name,
                            std::optional<TrailStep>& argument) const {
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

  SourceText text_of(const TrailStep& step) const {
    const SourceFile& source = *code_.files()[step.file].source;
    return {source.package, source.name, source.path, step.lines, {step.text}};
  }

 private:
  using Places = std::vector<std::pair<uint32_t, LineSpan>>;
  using Scopes = std::set<std::pair<uint32_t, uint32_t>>;

  std::vector<NameUse> uses_in(uint32_t file, uint32_t item) const {
    return programs_.definitions[side_]->uses_in(file, item);
  }

  static bool reads_self(const EventView& event) {
    for (uint64_t s = event.event->first_slot;
         s < event.event->first_slot + event.event->slot_count; ++s) {
      const Slot slot = event.log->slots[s];
      if (slot.kind == SlotKind::in && event.log->text(slot.name) == "self") return true;
    }
    return false;
  }

  std::optional<std::pair<uint32_t, uint32_t>> expression(const Location& at) const {
    const auto file = code_.find(at.path);
    if (!file || !code_.files()[*file].tree || at.line == 0) return {};
    const auto item =
        code_.files()[*file].expression_at(at.line, at.column, at.end_line, at.end_column);
    if (!item) return {};
    return std::pair(*file, *item);
  }

  // The statement an event stands in, and its function.
  void place(const EventRef& ref, Places& statements, Scopes& functions) const {
    place(view(run_, ref).location, statements, functions);
  }
  void place(const Location& at, Places& statements, Scopes& functions) const {
    const auto file = code_.find(at.path);
    if (!file || at.line == 0) return;
    const CodeFile& code = code_.files()[*file];
    LineSpan lines{at.line, std::max(at.line, at.end_line)};
    if (const auto found = expression(at))
      lines = code.statement_lines(code.statement_of(found->second));
    statements.emplace_back(*file, lines);
    functions.emplace(*file, code.scope_at(at.line));
  }

  // The recorded operators around it, and those that made what it reads.
  void read_stack(const EventRef& ref) {
    const ProcessLog& log = run_.processes[ref.process];
    const Event own = log.events[ref.event];
    Places unused;
    for (const FunctionCall* call : calls_to(run_, ref)) place(call->at, unused, trail_);
    for (uint32_t i = ref.event + 1; i < log.events.size(); ++i)
      if (log.events.thread(i) == own.thread && log.events[i].begin <= ref.event)
        place({ref.process, i}, unused, trail_);
    std::set<std::pair<uint64_t, uint64_t>> wanted;
    for (uint64_t s = own.first_slot; s < own.first_slot + own.slot_count; ++s)
      if (const Slot slot = log.slots[s]; slot.kind == SlotKind::in && !(slot.flags & kUnreadable))
        wanted.emplace(slot.value.h, slot.value.m);
    for (uint32_t i = ref.event; i-- > 0 && !wanted.empty();) {
      const Event event = log.events[i];
      for (uint64_t s = event.first_slot; s < event.first_slot + event.slot_count; ++s) {
        const Slot slot = log.slots[s];
        if (slot.kind != SlotKind::in && wanted.erase({slot.value.h, slot.value.m}) > 0)
          place({ref.process, i}, unused, trail_);
      }
    }
  }

  const Programs& programs_;
  const int side_;
  const Code& code_;
  const Run& run_;
  const Ran ran_;
  EventRef ref_;                                             // the candidate's
  std::optional<std::pair<uint32_t, uint32_t>> expression_;  // file and item
  Places statements_;
  Scopes functions_, trail_;
};

std::vector<std::string> first_lines(const SourceFile& source, const LineSpan& lines) {
  std::vector<std::string> found;
  for (uint32_t line = lines.first; line <= lines.last && found.size() < kMostLines; ++line)
    found.emplace_back(source.line_text(line));
  return found;
}

SourceText text_of(const Programs& programs, const Hunk& hunk, int side) {
  const auto file = programs.pairs[hunk.pair].file[side];
  if (!file) return {};
  const SourceFile& source = *programs.code[side]->files()[*file].source;
  SourceText text{source.package, source.name, source.path, hunk.lines[side], {}};
  if (!hunk.whole && !hunk.lines[side].empty()) text.text = first_lines(source, hunk.lines[side]);
  return text;
}

// A stretch of a settings file.
SourceText text_of(const TextPair& pair, int side, uint32_t first, uint32_t count) {
  if (pair.path[side].empty()) return {};
  const SourceFile source = make_source("", pair.name, pair.path[side], pair.text[side]);
  SourceText text{"", pair.name, pair.path[side], {}, {}};
  if (count > 0) {
    text.lines = {first, first + count - 1};
    text.text = first_lines(source, text.lines);
  }
  return text;
}

class Candidate {
 public:
  Candidate(const Programs& programs, const Alignment& alignment, const Pivot& pivot)
      : programs_(programs),
        pivot_(pivot),
        both_(view(*programs.runs[0], *programs.runs[1], pivot)),
        stands_{Stand(programs, alignment, pivot, 0), Stand(programs, alignment, pivot, 1)} {
    for (const Hunk& hunk : programs.hunks)
      if (stands_[0].ran(hunk) || stands_[1].ran(hunk)) ran_.push_back(hunk);
  }

  Background run() {
    Background background;
    if (pivot_.kind == PivotKind::scalar) {
      background.numbers = differing_numbers(both_);
      for (Number& number : background.numbers) trace(number);
    } else {
      trace_value(background.numbers);
    }
    add_suspects(background);
    return background;
  }

 private:
  const EventView& event(int side) const { return side == 0 ? both_.a : both_.b; }

  void trace(Number& number) {
    std::vector<NumberWay> setters;
    for (int side : {1, 0}) {
      std::optional<TrailStep> argument;
      const std::vector<NameUse> uses = stands_[side].uses(number.name, argument);
      const TrailFound found = stands_[side].follow(uses, kNumberDepth, ran_);
      add_ways(side, found.changed, argument, number.ways);
      if (uses.empty() && argument) {
        // A literal: it stands there.
        NumberWay way{side, {stands_[side].text_of(*argument)}, false};
        for (const Hunk& hunk : ran_)
          way.changed |= programs_.pairs[hunk.pair].file[side] == argument->file &&
                         hunk.lines[side].meets(argument->lines);
        (way.changed ? number.ways : setters).push_back(way);
      }
      for (const Trail& trail : found.setters) setters.push_back(way_of(side, trail, argument));
    }
    if (number.ways.empty() && !setters.empty()) {
      // Those of one side: the other's are alike where nothing changed.
      const int side = setters.front().side;
      std::erase_if(setters, [&](const NumberWay& way) { return way.side != side; });
      number.ways = std::move(setters);
    }
    if (number.ways.size() > kMostWays) number.ways.resize(kMostWays);
  }

  // An operator that is given the same and gives something else: with what was it made?
  void trace_value(std::vector<Number>& numbers) {
    Number made;
    for (int side : {1, 0}) {
      if (!event(side)) continue;
      const TrailFound found = stands_[side].follow(
          stands_[side].uses(pivot_.kind, event(side)),
          pivot_.kind == PivotKind::structure ? kNumberDepth : kValueDepth, ran_);
      if (pivot_.kind == PivotKind::value) add_ways(side, found.changed, {}, made.ways);
    }
    if (!made.ways.empty()) {
      if (made.ways.size() > kMostWays) made.ways.resize(kMostWays);
      numbers.push_back(std::move(made));
    }
  }

  NumberWay way_of(int side, const Trail& trail, const std::optional<TrailStep>& argument) const {
    NumberWay way;
    way.side = side;
    if (argument) way.steps.push_back(stands_[side].text_of(*argument));
    for (const TrailStep& step : trail.steps) way.steps.push_back(stands_[side].text_of(step));
    if (trail.text)
      way.steps.push_back(text_of(programs_.texts.texts[*trail.text], side, trail.line, 1));
    way.changed = trail.hunk || trail.text;
    return way;
  }

  void add_ways(int side, const std::vector<Trail>& trails,
                const std::optional<TrailStep>& argument, std::vector<NumberWay>& ways) {
    for (const Trail& trail : trails) {
      const bool known = trail.hunk ? !origins_.try_emplace(*trail.hunk, origins_.size()).second
                                    : !texts_.emplace(*trail.text, trail.line).second;
      // Run b's way to a hunk stands for run a's to the same.
      if (!known) ways.push_back(way_of(side, trail, argument));
    }
  }

  void add_suspects(Background& background) {
    struct Ranked {
      Suspect suspect;
      size_t order;
    };
    std::vector<Ranked> all;
    for (uint32_t i = 0; i < ran_.size(); ++i) {
      const Hunk& hunk = ran_[i];
      Suspect suspect;
      suspect.nearness = std::min(stands_[0].nearness(hunk), stands_[1].nearness(hunk));
      const auto origin = origins_.find(i);
      if (origin != origins_.end()) suspect.nearness = std::min(suspect.nearness, Nearness::origin);
      suspect.whole = hunk.whole;
      for (int side : {0, 1}) {
        suspect.sides[side] = text_of(programs_, hunk, side);
        if (const auto file = programs_.pairs[hunk.pair].file[side]; file && suspect.last == 0)
          suspect.last = stands_[side].ran().last_event(*file, hunk.lines[side]);
      }
      all.push_back({std::move(suspect), origin == origins_.end() ? 0 : origin->second});
    }
    for (uint32_t i = 0; i < programs_.texts.texts.size(); ++i) {
      const TextPair& pair = programs_.texts.texts[i];
      for (const LineChange& change : changed_lines(pair.text[0], pair.text[1])) {
        Suspect suspect;
        suspect.nearness = Nearness::unseen;
        suspect.sides[0] = text_of(pair, 0, change.first_a, change.count_a);
        suspect.sides[1] = text_of(pair, 1, change.first_b, change.count_b);
        for (const auto& [text, line] : texts_)
          for (int side : {0, 1})
            if (text == i && suspect.sides[side].lines.meets({line, line}))
              suspect.nearness = Nearness::origin;
        all.push_back({std::move(suspect), origins_.size()});
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const Ranked& x, const Ranked& y) {
      return std::make_tuple(x.suspect.nearness, x.order, ~x.suspect.last) <
             std::make_tuple(y.suspect.nearness, y.order, ~y.suspect.last);
    });
    for (Ranked& ranked : all)
      if (background.suspects.size() < kMostSuspects)
        background.suspects.push_back(std::move(ranked.suspect));
      else
        ++background.more;
  }

  const Programs& programs_;
  const Pivot& pivot_;
  const PivotView both_;
  Stand stands_[2];
  std::vector<Hunk> ran_;
  std::map<uint32_t, size_t> origins_;             // hunk of ran_ -> its place among the ways
  std::set<std::pair<uint32_t, uint32_t>> texts_;  // text and line where a way ends
};

// A file that only b has and one that only a has are one if most of the boundaries that both runs
// know in the one stand in the other.
std::unordered_map<std::string, std::string> renamed_files(const Run& a, const Run& b) {
  std::map<std::string, std::string> path_in_a;
  for (const ProcessLog& log : a.processes)
    for (const auto& [boundary, location] : log.locations) path_in_a[boundary] = location.path;
  std::map<std::string, std::map<std::string, size_t>> votes;
  for (const ProcessLog& log : b.processes)
    for (const auto& [boundary, location] : log.locations)
      if (const auto at = path_in_a.find(boundary); at != path_in_a.end())
        ++votes[location.path][at->second];
  std::unordered_map<std::string, std::string> renamed;
  for (const auto& [path, all] : votes)
    renamed[path] = std::max_element(all.begin(), all.end(), [](const auto& x, const auto& y) {
                      return x.second < y.second;
                    })->first;
  return renamed;
}

}  // namespace

const char* nearness_name(Nearness nearness) {
  static constexpr const char* kNames[] = {"statement", "origin",  "function", "trail",
                                           "file",      "earlier", "unseen"};
  return kNames[static_cast<size_t>(nearness)];
}

std::vector<Background> find_backgrounds(const ProgramTexts& texts, const Run& a, const Run& b,
                                         const Alignment& alignment, const Verdict& verdict) {
  std::vector<Background> backgrounds(verdict.candidates.size());
  if (verdict.candidates.empty()) return backgrounds;
  const Code code[2] = {Code(texts.sources[0]), Code(texts.sources[1])};
  const std::vector<FilePair> pairs = pair_files(code[0], code[1], renamed_files(a, b));
  const std::vector<Hunk> hunks = find_hunks(code[0], code[1], pairs);
  const Definitions definitions[2] = {Definitions(code[0]), Definitions(code[1])};
  const Programs programs{texts, {&a, &b}, {&code[0], &code[1]}, {&definitions[0], &definitions[1]},
                          pairs, hunks};
  for (size_t i = 0; i < backgrounds.size(); ++i)
    backgrounds[i] = Candidate(programs, alignment, verdict.candidates[i]).run();
  return backgrounds;
}

}  // namespace opguard
