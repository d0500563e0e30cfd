// Pairs of logs judged as they are and without each heuristic, for bench/ablation.py. It reads a
// pair a line from stdin, the two folders apart by a tab. It prints a line of JSON for each:
//
//   {"verdict": "diverged", "pivot": ..., "heuristics": ["echo"], "without": {"echo": null, ...}}
//
// `pivot` is the kind and both sides' places, null where none is named. `without` has for each
// heuristic the verdict and pivot where others come out, else null. A folder that cannot be read
// gives {"error": ...}.
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "align/judge/conclude.h"
#include "align/judge/pivot_view.h"
#include "align/pair/run.h"
#include "nlohmann/json.hpp"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

Json place_json(const EventView& event) {
  if (!event) return nullptr;
  return Json::array({event.location.file, event.location.line, event.location.column});
}

Json answer(const Run& a, const Run& b, const Verdict& verdict) {
  Json json = {{"verdict", outcome_name(verdict.outcome)}, {"pivot", nullptr}};
  if (verdict.candidates.empty()) return json;
  const PivotView shown = view(a, b, verdict.candidates.front());
  json["pivot"] = Json::array(
      {kind_name(verdict.candidates.front().kind), place_json(shown.a), place_json(shown.b)});
  return json;
}

Json judge_pair(const std::string& dir_a, const std::string& dir_b) {
  auto a = load_run(dir_a);
  if (!a) return {{"error", llvm::toString(a.takeError())}};
  auto b = load_run(dir_b);
  if (!b) return {{"error", llvm::toString(b.takeError())}};
  const SettingsReport settings = compare_settings(*a, *b);
  const std::vector<Rule> rules;
  auto judged = [&](const Heuristics& off) {
    HiddenRecords hidden(rules, *a, *b);
    return conclude(*a, *b, settings, hidden, {}, off).verdict;
  };
  const Verdict whole = judged({});
  Json json = answer(*a, *b, whole);
  const Json known = json;
  json["heuristics"] = Json::array();
  json["without"] = Json::object();
  for (const HeuristicText& text : kHeuristics) {
    const std::string name(text.name);
    if (!whole.candidates.empty() && whole.candidates.front().heuristics.has(text.heuristic))
      json["heuristics"].push_back(name);
    Heuristics off;
    off.add(text.heuristic);
    const Json other = answer(*a, *b, judged(off));
    json["without"][name] = other == known ? Json() : other;
  }
  return json;
}

}  // namespace
}  // namespace opguard

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) return 2;
    const auto json = opguard::judge_pair(line.substr(0, tab), line.substr(tab + 1));
    std::printf("%s\n", json.dump().c_str());
    std::fflush(stdout);
  }
}
