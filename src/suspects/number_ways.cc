// A number's ways back, in both runs' sources, b's first.
//
//   group0.lr: 0.0002 in a, 0.0 in b
//   names      stand.uses(): the argument that carries it, or the key "lr"
//   follow     trail.h, to at most kMostWays hunks
//   none       literals.h: is there a hunk in which 0.0002 became 0.0?
//
// Counterexample: a way of nine statements beside one of one. It is likely of the same words by
// chance, so its hunk counts as trail and is not shown.
//
// The cost: two searches (trail.h) for each number that differs, at most kMostNumbers.
#include "suspects/number_ways.h"

#include <algorithm>
#include <map>
#include <optional>

#include "align/pair/difference.h"
#include "suspects/literals.h"

namespace opguard {
namespace {

constexpr size_t kNumberDepth = 10;  // statements from a number back to what made it
constexpr size_t kValueDepth = 4;    // from another value
constexpr size_t kMostWays = 3;      // of a number
constexpr size_t kMostNumbers = 4;   // of a candidate

// "group0.lr=0.1, nesterov=False" -> {group0.lr: 0.1, nesterov: False}
std::map<std::string, std::string> items_of(const std::string& scalars) {
  std::map<std::string, std::string> items;
  for (const std::string& item : split_scalars(scalars)) {
    const size_t equals = item.find('=');
    if (equals != std::string::npos) items[item.substr(0, equals)] = item.substr(equals + 1);
  }
  return items;
}

// By name, in alphabetical order; one that a side lacks has "" there.
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
      numbers.push_back({name, {value(a, name), value(b, name)}, {}, {}});
  return numbers;
}

class Tracer {
 public:
  Tracer(const Programs& programs, PivotKind kind, const PivotView& both, Stand (&stands)[2],
         const std::vector<Hunk>& ran)
      : programs_(programs), kind_(kind), both_(both), stands_(stands), ran_(ran) {}

  NumberWays run() {
    if (kind_ == PivotKind::scalar) {
      found_.numbers = differing_numbers(both_);
      for (Number& number : found_.numbers) {
        trace(number);
        // Where no name leads to what differs.
        if (found_.origins.empty() && found_.texts.empty()) add_literals(number);
      }
    } else {
      trace_value();
      for (Number& number : differing_sizes(both_))
        if (found_.numbers.size() < kMostNumbers && add_literals(number))
          found_.numbers.push_back(std::move(number));
    }
    return std::move(found_);
  }

 private:
  const EventView& event(int side) const { return side == 0 ? both_.a : both_.b; }

  void trace(Number& number) {
    // Ways to what gave the number, of which nothing differs: told where no way leads to a change.
    std::vector<NumberWay> setters;
    for (int side : {1, 0}) {
      std::optional<TrailStep> argument;
      const std::vector<NameUse> uses = stands_[side].uses(number.name, argument);
      if (argument) number.given[side] = argument->text;
      const TrailFound found = stands_[side].follow(uses, kNumberDepth, ran_);
      add_ways(side, found.changed, argument, number.ways);
      if (uses.empty() && argument) {
        // A literal: it stands there.
        NumberWay way{side, {stands_[side].text_of(*argument)}, false};
        for (const Hunk& hunk : ran_)
          way.changed |= programs_.pairs[hunk.pair].file[side] == argument->file &&
                         hunk.lines[side].meets(argument->lines);
        add(way, way.changed ? number.ways : setters);
      }
      for (const Trail& trail : found.setters) add(way_of(side, trail, argument), setters);
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
  void trace_value() {
    Number made;
    for (int side : {1, 0}) {
      if (!event(side)) continue;
      const TrailFound found =
          stands_[side].follow(stands_[side].uses(kind_, event(side)), kValueDepth, ran_);
      if (kind_ == PivotKind::value) add_ways(side, found.changed, {}, made.ways);
      if (kind_ != PivotKind::structure) continue;
      for (const Trail& trail :
           stands_[side].follow(stands_[side].conditions(), kNumberDepth, ran_).changed)
        if (trail.hunk) found_.decides.try_emplace(*trail.hunk, found_.decides.size());
    }
    if (!made.ways.empty()) {
      if (made.ways.size() > kMostWays) made.ways.resize(kMostWays);
      found_.numbers.push_back(std::move(made));
    }
  }

  // Hunks in which the one number became the other. Are there any?
  bool add_literals(Number& number) {
    bool any = false;
    for (uint32_t i = 0; i < ran_.size(); ++i) {
      const Hunk& hunk = ran_[i];
      if (hunk.whole || hunk.lines[0].empty() || hunk.lines[1].empty()) continue;
      std::string text[2];
      for (int side : {0, 1}) {
        const FilePair& pair = programs_.pairs[hunk.pair];
        const SourceFile& file = *programs_.code[side]->files()[*pair.file[side]].source;
        for (uint32_t line = hunk.lines[side].first; line <= hunk.lines[side].last; ++line)
          text[side].append(file.line_text(line)).append("\n");
      }
      if (!gives(text[0], text[1], number)) continue;
      any = true;
      if (found_.origins.try_emplace(i, found_.origins.size()).second &&
          number.ways.size() < kMostWays)
        number.ways.push_back({1, {text_of(programs_, hunk, 1)}, true});
    }
    return any;
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

  // A way of one statement says more than one of nine, which may be of the same words by chance.
  static bool is_far(const Trail& trail, const std::vector<Trail>& trails) {
    return trail.steps.size() > 2 * trails.front().steps.size() + 2;
  }

  // trails: the nearest first.
  void add_ways(int side, const std::vector<Trail>& trails,
                const std::optional<TrailStep>& argument, std::vector<NumberWay>& ways) {
    for (const Trail& trail : trails) {
      if (trail.hunk && is_far(trail, trails)) {
        found_.far.insert(*trail.hunk);
        continue;
      }
      // A hunk or a settings file that another way has led to, of this number or another.
      const bool known =
          trail.hunk ? !found_.origins.try_emplace(*trail.hunk, found_.origins.size()).second
                     : !found_.texts.emplace(*trail.text, trail.line).second;
      if (known || stands_for(side, trail)) continue;
      for (const uint32_t hunk : hunks_under(side, trail)) under_[side].insert(hunk);
      add(way_of(side, trail, argument), ways);
    }
  }

  // The hunks of the statement where a way ends.
  std::vector<uint32_t> hunks_under(int side, const Trail& trail) const {
    std::vector<uint32_t> hunks;
    if (!trail.hunk || trail.steps.empty()) return hunks;
    const TrailStep& end = trail.steps.back();
    for (uint32_t i = 0; i < ran_.size(); ++i)
      if (programs_.pairs[ran_[i].pair].file[side] == end.file &&
          ran_[i].lines[side].meets(end.lines))
        hunks.push_back(i);
    return hunks;
  }

  // The other run's way that is known ends in the same statement.
  bool stands_for(int side, const Trail& trail) const {
    const std::vector<uint32_t> hunks = hunks_under(side, trail);
    return std::any_of(hunks.begin(), hunks.end(),
                       [&](uint32_t hunk) { return under_[1 - side].contains(hunk); });
  }

  // Two names of one statement lead the same way.
  static void add(NumberWay way, std::vector<NumberWay>& ways) {
    for (NumberWay& known : ways)
      if (known.side == way.side && known.steps == way.steps) {
        known.changed |= way.changed;
        return;
      }
    ways.push_back(std::move(way));
  }

  const Programs& programs_;
  const PivotKind kind_;
  const PivotView& both_;
  Stand (&stands_)[2];
  const std::vector<Hunk>& ran_;
  NumberWays found_;
  std::set<uint32_t> under_[2];  // hunks of the statements where ways of a side end
};

}  // namespace

NumberWays find_ways(const Programs& programs, PivotKind kind, const PivotView& both,
                     Stand (&stands)[2], const std::vector<Hunk>& ran) {
  return Tracer(programs, kind, both, stands, ran).run();
}

}  // namespace opguard
