// The hunks that ran before a candidate, ranked by how near they stand to it.
//
//   hunks of the two texts       train.py:20-31 get_lr, model.py:7, log.py:3
//   ran before the candidate     train.py:20-31, model.py:7
//   nearness                     origin: the learning rate leads there; earlier
//   told                         train.py:20-31 first, model.py:7 behind it
//
// Sources, hunks and definitions are read once for a verdict. Only where a candidate stands is read
// anew for each.
//
// Counterexample: a hunk that did not run before the candidate is not told, however near it stands.
// It cannot be the cause.
//
// The cost: a parse of every file that either program loaded; of a candidate some passes over both
// runs' events.
#include "suspects/suspects.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "align/judge/pivot_view.h"
#include "patcher/line_diff.h"
#include "suspects/agreed.h"
#include "suspects/number_ways.h"
#include "suspects/programs.h"
#include "suspects/stand.h"

namespace opguard {
namespace {

class Candidate {
 public:
  Candidate(const Programs& programs, const Alignment& alignment, const Pivot& pivot)
      : programs_(programs),
        pivot_(pivot),
        both_(view(*programs.runs[0], *programs.runs[1], pivot)),
        alignment_(alignment),
        stands_{Stand(programs, alignment, pivot, 0), Stand(programs, alignment, pivot, 1)} {
    for (const Hunk& hunk : programs.hunks)
      if (stands_[0].ran(hunk) || stands_[1].ran(hunk)) ran_.push_back(hunk);
  }

  Background run() {
    ways_ = find_ways(programs_, pivot_.kind, both_, stands_, ran_);
    Background background;
    add_suspects(background);
    background.numbers = std::move(ways_.numbers);
    return background;
  }

 private:
  // All of them in one order. What agrees comes last whatever its nearness; of equals the one that
  // ran last comes first.
  void add_suspects(Background& background) {
    struct Ranked {
      Suspect suspect;
      // Among those of one nearness: how soon a way led there.
      size_t order;
    };
    std::vector<Ranked> all;
    std::vector<HunkStatements> statements = find_agreed(programs_, alignment_, pivot_, ran_);
    for (uint32_t i = 0; i < ran_.size(); ++i) {
      const Hunk& hunk = ran_[i];
      Suspect suspect;
      suspect.nearness = std::min(stands_[0].nearness(hunk), stands_[1].nearness(hunk));
      const auto origin = ways_.origins.find(i);
      if (origin != ways_.origins.end())
        suspect.nearness = std::min(suspect.nearness, Nearness::origin);
      // A nearness only ever gets nearer: each sign is one more reason.
      if (ways_.far.contains(i)) suspect.nearness = std::min(suspect.nearness, Nearness::trail);
      const auto decides = ways_.decides.find(i);
      if (decides != ways_.decides.end())
        suspect.nearness = std::min(suspect.nearness, Nearness::decides);
      suspect.whole = hunk.whole;
      for (int side : {0, 1}) suspect.statements[side] = std::move(statements[i][side]);
      for (int side : {0, 1}) {
        suspect.sides[side] = text_of(programs_, hunk, side);
        // Run a's where both have events in it: numbers of two runs are not compared.
        if (const auto file = programs_.pairs[hunk.pair].file[side]; file && suspect.last == 0)
          suspect.last = stands_[side].ran().last_event(*file, hunk.lines[side]);
      }
      const size_t order = origin != ways_.origins.end()    ? origin->second
                           : decides != ways_.decides.end() ? decides->second
                                                            : 0;
      all.push_back({std::move(suspect), order});
    }
    // Settings files and other texts. Nothing tells whether they were read, so all of their changes
    // are suspects, and behind the others unless a name led there.
    for (uint32_t i = 0; i < programs_.texts.texts.size(); ++i) {
      const TextPair& pair = programs_.texts.texts[i];
      for (const LineChange& change : changed_lines(pair.text[0], pair.text[1])) {
        Suspect suspect;
        suspect.nearness = Nearness::unseen;
        suspect.sides[0] = text_of(pair, 0, change.first_a, change.count_a);
        suspect.sides[1] = text_of(pair, 1, change.first_b, change.count_b);
        for (const auto& [text, line] : ways_.texts)
          for (int side : {0, 1})
            if (text == i && suspect.sides[side].lines.meets({line, line}))
              suspect.nearness = Nearness::origin;
        all.push_back({std::move(suspect), ways_.origins.size()});
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const Ranked& x, const Ranked& y) {
      return std::make_tuple(x.suspect.agrees(), x.suspect.nearness, x.order, ~x.suspect.last) <
             std::make_tuple(y.suspect.agrees(), y.suspect.nearness, y.order, ~y.suspect.last);
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
  const Alignment& alignment_;
  Stand stands_[2];
  std::vector<Hunk> ran_;
  NumberWays ways_;
};

// A file that only b has may be one that only a has. Each boundary that both runs know votes for
// the file where it stands in a, and most votes win.
//
//   a  net.py    net.mul:77ab, net.add:1k2c      b  model/net.py    net.mul:77ab, net.add:1k2c
//
// A path of b -> a path of a. Files that both programs call by one name are in it as well;
// pair_files() asks only for the rest.
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

bool Suspect::agrees(const LineSpan& a, const LineSpan& b) const {
  bool any = false;
  for (int side : {0, 1})
    for (const HunkStatement& statement : statements[side]) {
      if (!statement.lines.meets(side == 0 ? a : b)) continue;
      if (!statement.agrees) return false;
      any = true;
    }
  return any;
}

const char* nearness_name(Nearness nearness) {
  static constexpr const char* kNames[] = {"statement", "origin", "function", "decides",
                                           "trail",     "file",   "earlier",  "unseen"};
  return kNames[static_cast<size_t>(nearness)];
}

std::vector<Background> find_backgrounds(const ProgramTexts& texts, const Run& a, const Run& b,
                                         const Alignment& alignment, const Verdict& verdict) {
  std::vector<Background> backgrounds(verdict.candidates.size());
  if (verdict.candidates.empty()) return backgrounds;
  // These refer to one another, in this order: trees, pairs of files, hunks, definitions.
  const Code code[2] = {Code(texts.sources[0]), Code(texts.sources[1])};
  const std::vector<FilePair> pairs = pair_files(code[0], code[1], renamed_files(a, b));
  const std::vector<Hunk> hunks = find_hunks(code[0], code[1], pairs);
  const Definitions definitions[2] = {Definitions(code[0], a.calls), Definitions(code[1], b.calls)};
  const Programs programs{texts, {&a, &b}, {&code[0], &code[1]}, {&definitions[0], &definitions[1]},
                          pairs, hunks};
  for (size_t i = 0; i < backgrounds.size(); ++i)
    backgrounds[i] = Candidate(programs, alignment, verdict.candidates[i]).run();
  return backgrounds;
}

}  // namespace opguard
