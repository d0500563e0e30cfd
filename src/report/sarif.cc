// Writes the verdict in the words of SARIF: a candidate is a result, and how the runs came to it a
// code flow.
//
//   candidate 1, at model.py:12 of run b       result "value", level error; region line 12
//   the same operator in run a                 relatedLocations: "the same in run a"
//   from the last certified pair to there      codeFlows: at most 20 events of it
//   notes of the verdict and of the logs       toolExecutionNotifications
//
// Columns count characters, as a log does, and not bytes; SARIF calls them unicodeCodePoints.
// Counterexample: the path that the run had. On another machine it leads nowhere, so a path is
// relative to its repository, and the repository is named once with its revision.
#include "report/sarif.h"

#include <algorithm>
#include <map>

#include "align/judge/pivot_view.h"
#include "llvm/ADT/StringRef.h"
#include "nlohmann/json.hpp"
#include "report/background_text.h"
#include "report/identity.h"
#include "report/notes_text.h"
#include "report/proof_text.h"
#include "report/rank_text.h"
#include "report/reasons.h"
#include "report/region.h"
#include "report/rows.h"
#include "report/sarif_parts.h"
#include "report/step_text.h"
#include "report/uri.h"
#include "support/text.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFlowEnds = 10;  // events shown at either end of a longer flow

struct Rule {
  PivotKind kind;
  const char* text;
};
// Every PivotKind stands here, in any order. ruleIndex counts in this list, and that of a missing
// kind would lie behind it.
constexpr Rule kRules[] = {
    {PivotKind::value, "An operator with equal inputs gives another result."},
    {PivotKind::scalar, "An operator with equal tensors has another argument."},
    {PivotKind::structure, "An operator ran in one run only, or on another dtype or shape."},
    {PivotKind::input, "An operator reads a value that no recorded operator made."},
    {PivotKind::race, "A tensor's memory changed without a recorded write."},
    {PivotKind::missing_reduce, "Ranks hold parts of a sum that nothing adds up."},
    {PivotKind::scale, "A tensor is a multiple of the reference's."},
    {PivotKind::layout, "A tensor has the reference's elements at other places."},
    {PivotKind::omits, "A piece of the reference's tensor is held by no rank."},
    {PivotKind::replicas, "Ranks that should hold the same do not."},
    {PivotKind::stale, "The value of another layer, micro-batch or step is used."},
    {PivotKind::mapping, "A layer of the reference is held by no rank."},
    {PivotKind::precision, "A narrower type is computed in."},
    {PivotKind::declared, "Ranks hold a tensor otherwise than a library declares."},
};

class Sarif {
 public:
  explicit Sarif(const Report& report) : report_(report), lanes_(lanes_of(report)) {}

  std::string run() {
    Json results = Json::array();
    for (const Pivot& pivot : report_.verdict.candidates)
      if (Json result = result_of(pivot); !result.is_null()) results.push_back(std::move(result));

    Json driver = {{"name", "opguard"}};
    const Json identity = identity_json(report_.identity);
    const std::string version = identity["opguard"]["version"];
    const std::string commit = identity["opguard"]["commit"];
    driver["version"] = version + (commit.empty() ? "" : " (" + commit + ")");
    driver["semanticVersion"] = version;
    driver["rules"] = Json::array();
    for (const Rule& rule : kRules)
      driver["rules"].push_back({{"id", kind_name(rule.kind)},
                                 {"shortDescription", {{"text", rule.text}}},
                                 {"defaultConfiguration", {{"level", "error"}}}});
    Json notes = Json::array();
    std::vector<std::string> all = step_sentences(report_.alignment);
    for (const std::string& note : words(report_.a, report_.b, report_.verdict.notes))
      all.push_back(note);
    for (const std::string& note : log_notes(report_.a, report_.b)) all.push_back(note);
    for (const std::string& note : words(report_.settings)) all.push_back(note);
    for (const std::string& rule : rule_sentences(report_)) all.push_back("rule " + rule);
    for (const std::string& note : all)
      notes.push_back({{"level", "note"}, {"message", {{"text", shown(note)}}}});

    Json run;
    run["tool"] = {{"driver", std::move(driver)}};
    run["columnKind"] = "unicodeCodePoints";
    Json& invocation = run["invocations"][0];
    invocation["executionSuccessful"] = true;
    invocation["commandLine"] = shown(report_.identity.command);
    invocation["endTimeUtc"] = report_.identity.date;
    invocation["toolExecutionNotifications"] = std::move(notes);
    if (Json control = version_control(); !control.empty())
      run["versionControlProvenance"] = std::move(control);
    for (const auto& [root, name] : roots_) run["originalUriBaseIds"][name] = {{"uri", root}};
    run["results"] = std::move(results);
    run["properties"] = {{"schema", kSchemaVersion},
                         {"revisions", {{"a", run_json(report_.a)}, {"b", run_json(report_.b)}}},
                         {"verdict", outcome_name(report_.verdict.outcome)},
                         {"why", shown(words(report_.a, report_.b, report_.verdict.why))},
                         {"proof", report_.proof ? proof_name(report_.proof->state) : "none"},
                         {"certified_prefix", report_.alignment.certified_prefix},
                         {"pairs", report_.alignment.pairs}};
    return sarif_text(std::move(run));
  }

 private:
  // A reader joins a file to its tree's root, or to its own: only the relative path is its
  // business.
  Json artifact(int side, const Location& at) {
    const Provenance& from = *(side == 0 ? report_.a : report_.b).provenance;
    const std::string home = from.home_path(at.path);
    const llvm::StringRef path = home, file = at.file;
    if (!from.repository.empty() && path.starts_with(from.repository + "/"))
      // The file lies in the repository: named from its root, as a review names it.
      return {{"uri", uri(path.drop_front(from.repository.size() + 1))},
              {"uriBaseId", repository_base(from.repository)}};
    // No tree is known: the absolute path is all there is.
    if (file.empty() || file.starts_with("/"))
      return {{"uri", "file://" + uri(file.empty() ? path : file)}};
    Json artifact = {{"uri", uri(file)}};
    if (path.ends_with(file) && path.drop_back(file.size()).ends_with("/")) {
      const std::string root = "file://" + uri(path.drop_back(file.size()));
      const std::string name = side == 0 ? "TREE_A" : "TREE_B";
      // Sides of one tree share its name; each package has a root of its own.
      auto [found, fresh] = roots_.try_emplace(root, name);
      if (fresh && sides_[side]++ > 0) found->second += "_" + std::to_string(sides_[side]);
      artifact["uriBaseId"] = found->second;
    }
    return artifact;
  }

  // Annotations are shown on the files of the repository: its root is the base of both sides.
  std::string repository_base(const std::string& repository) {
    auto [at, fresh] = roots_.try_emplace("file://" + uri(repository) + "/", "REPOSITORY");
    if (fresh && repositories_++ > 0) at->second += "_" + std::to_string(repositories_);
    return at->second;
  }

  // Of each side that git knows.
  Json version_control() {
    Json list = Json::array();
    for (const Run* run : {&report_.a, &report_.b}) {
      const Provenance& from = *run->provenance;
      if (from.repository.empty() || from.commit.empty()) continue;
      const bool known = from.remote.find("://") != std::string::npos;
      Json entry = {{"repositoryUri", known ? from.remote : "file://" + uri(from.repository)},
                    {"revisionId", from.commit},
                    {"mappedTo", {{"uriBaseId", repository_base(from.repository)}}}};
      if (!from.revision.empty()) entry["revisionTag"] = shown(from.revision);
      if (std::find(list.begin(), list.end(), entry) == list.end()) list.push_back(entry);
    }
    return list;
  }

  // "run a", "run a (v1)".
  std::string run_name(int side) const {
    const std::string& revision = (side == 0 ? report_.a : report_.b).provenance->revision;
    return std::string("run ") + "ab"[side] +
           (revision.empty() ? "" : " (" + shown(revision) + ")");
  }

  // What the other side has where this one is: the same, something else, or the same elsewhere.
  void add_other_side(const PivotView& both, Json& json) {
    if (both.a && both.b) {
      const bool same = both.a.boundary == both.b.boundary;
      json["relatedLocations"][0] =
          location(0, both.a, (same ? "the same in " : "what was done instead in ") + run_name(0));
      return;
    }
    const int side = both.a ? 1 : 0;
    const EventView other = same_boundary(side == 0 ? report_.a : report_.b, both.either());
    if (!other) return;
    json["relatedLocations"][0] =
        location(side, other,
                 run_name(side) + " runs it elsewhere: " + coordinates(other) + ", micro-batch " +
                     std::to_string(other.event->micro_batch));
  }

  // Columns count from 1 here and from 0 in a Location; both end behind the last character. Where
  // no expression is known the whole line is meant.
  Json location(int side, const EventView& event, const std::string& message) {
    Json json = Json::object();
    const Location& at = event.location;
    if (!at.file.empty() || !at.path.empty()) {
      Json& place = json["physicalLocation"];
      place["artifactLocation"] = artifact(side, at);
      if (at.line > 0) {
        Json& region = place["region"];
        region["startLine"] = at.line;
        if (!at.text.empty()) {
          region["startColumn"] = at.column + 1;
          if (at.end_line > at.line || (at.end_line == at.line && at.end_column > at.column)) {
            region["endLine"] = at.end_line;
            region["endColumn"] = at.end_column + 1;
          }
          region["snippet"] = {{"text", shown(at.text)}};
        }
      }
    }
    json["logicalLocations"][0] = {{"name", shown(event.operator_name)},
                                   {"fullyQualifiedName", shown(event.boundary)}};
    if (!message.empty()) json["message"] = {{"text", message}};
    return json;
  }

  // "forward, step 0, rank 0".
  static std::string coordinates(const EventView& event) {
    return std::string(phase_name(event.event->phase)) + ", step " +
           std::to_string(event.event->step) + ", rank " + std::to_string(event.log->rank);
  }

  // The events of one side from the last certified pair, if that is of the candidate's own rank, to
  // the candidate. Then follows how the difference came to the other ranks.
  Json flow(int side, const Pivot& pivot) {
    const EventRef& event = side == 0 ? pivot.a : pivot.b;
    const RowRef to = find_row(lanes_, side, event), from = last_certified(report_, lanes_);
    if (to.lane < 0) return nullptr;
    const bool certified = from.lane == to.lane && from.row <= to.row;
    if (!certified && report_.verdict.ranks.empty()) return nullptr;
    const ProcessLog& log = (side == 0 ? report_.a : report_.b).processes[event.process];
    std::vector<uint32_t> events;
    for (uint32_t row = certified ? from.row : to.row; row <= to.row; ++row) {
      const LaneRow& at = lanes_[to.lane].rows[row];
      if (const uint32_t index = side == 0 ? at.a : at.b; index != kNone) events.push_back(index);
    }
    Json locations = Json::array();
    // Of a longer flow the first ten and the last ten: the certified end and the pivot are what it
    // is read for.
    for (size_t i = 0; i < events.size(); ++i) {
      if (events.size() > 2 * kFlowEnds && i == kFlowEnds) i = events.size() - kFlowEnds;
      const EventView at = view(log, events[i]);
      std::string message = shown(at.operator_name) + ", " + coordinates(at);
      if (i == 0 && certified) message = "the last pair certified equal: " + message;
      if (i + 1 == events.size()) message = "here the runs part: " + message;
      locations.push_back({{"location", location(side, at, message)}});
    }
    Json json;
    json["threadFlows"][0]["locations"] = std::move(locations);
    add_ranks(json["threadFlows"]);
    return json;
  }

  // A flow a rank: where the difference came to it. Ranks of which the same is said share one.
  void add_ranks(Json& flows) {
    for (const RankLine& line : rank_lines(report_)) {
      const auto share =
          std::find_if(report_.verdict.ranks.begin(), report_.verdict.ranks.end(),
                       [&](const RankShare& share) { return share.rank == line.ranks.front(); });
      const EventView a = view(report_.a, share->a), b = view(report_.b, share->b);
      if (share->role != RankRole::received || !(a || b)) continue;
      Json flow;
      flow["id"] = ranks_text(line.ranks);
      flow["message"] = {{"text", ranks_text(line.ranks) + ": " + line.text}};
      flow["locations"][0] = {
          {"location", location(b ? 1 : 0, b ? b : a, ranks_text(line.ranks) + ": " + line.text)}};
      flows.push_back(std::move(flow));
    }
  }

  // null: neither log has an event of the candidate, so there is no place to annotate.
  Json result_of(const Pivot& pivot) {
    const PivotView both = view(report_.a, report_.b, pivot);
    if (!both.either()) return nullptr;
    const bool first = &pivot == &report_.verdict.candidates.front();
    const int side = both.b ? 1 : 0;
    const EventView& main = side == 1 ? both.b : both.a;
    Json json;
    json["ruleId"] = kind_name(pivot.kind);
    json["ruleIndex"] = std::find_if(std::begin(kRules), std::end(kRules),
                                     [&](const Rule& rule) { return rule.kind == pivot.kind; }) -
                        std::begin(kRules);
    json["level"] = first ? "error" : "note";
    std::string message = first ? "The two runs stop being bit-identical at "
                                : "Another candidate for where the two runs part: ";
    message += shown(main.operator_name) + " (" + coordinates(main) +
               "): " + shown(words(report_.a, report_.b, pivot.why)) + ".";
    json["message"] = {{"text", message}};
    json["locations"][0] = location(side, main, "");
    add_other_side(both, json);
    add_region(pivot, json);
    add_background(size_t(&pivot - report_.verdict.candidates.data()), json);
    if (first)
      if (Json steps = flow(side, pivot); !steps.is_null()) json["codeFlows"][0] = std::move(steps);
    // By boundary, not by line: the same finding in a later version of the sources.
    json["partialFingerprints"] = {{"opguardBoundary/v1", shown(main.boundary)}};
    json["properties"] = {{"slot", shown(both.slot)},
                          {"step", main.event->step},
                          {"rank", main.log->rank},
                          {"phase", phase_name(main.event->phase)}};
    return json;
  }

  // Every span of the region as a place of its own: a reader sees whole lines, not the operator.
  void add_region(const Pivot& pivot, Json& json) {
    // An operator that is its own region is the result's place already.
    auto own = [](const std::vector<EventRef>& region, const EventRef& event) {
      return std::all_of(region.begin(), region.end(),
                         [&](const EventRef& ref) { return ref == event; });
    };
    if (own(pivot.region[0], pivot.a) && own(pivot.region[1], pivot.b)) return;
    const auto spans = region_of(report_.a, report_.b, pivot);
    for (int side : {0, 1})
      for (const RegionSpan& span : spans[side])
        add_related(side, span.file, span.path, span.first, span.last,
                    std::string("the region of run ") + "ab"[side], json);
  }

  // Where a number can come from, and the nearest suspects.
  void add_background(size_t candidate, Json& json) {
    constexpr size_t kShown = 5;
    const Background* known = background_of(report_, candidate);
    if (!known) return;
    auto add = [&](int side, const SourceText& text, const std::string& message) {
      if (!text.lines.empty())
        add_related(side, text.file, text.path, text.lines.first, text.lines.last, message, json);
    };
    for (const Number& number : known->numbers)
      for (const NumberWay& way : number.ways)
        for (const SourceText& step : way.steps) add(way.side, step, number_title(number));
    for (size_t i = 0; i < std::min(known->suspects.size(), kShown); ++i) {
      const Suspect& suspect = known->suspects[i];
      // Side b's where it has lines: the tree under review.
      const int side = suspect.sides[1].lines.empty() ? 0 : 1;
      add(side, suspect.sides[side], "suspect, the sources differ here: " + suspect_text(suspect));
    }
  }

  // Lines alone, without columns: of a region or a statement in the sources.
  void add_related(int side, const std::string& file, const std::string& path, uint32_t first,
                   uint32_t last, const std::string& message, Json& json) {
    Location at;
    at.file = file, at.path = path;
    Json place;
    place["physicalLocation"]["artifactLocation"] = artifact(side, at);
    if (first > 0) place["physicalLocation"]["region"] = {{"startLine", first}, {"endLine", last}};
    place["message"] = {{"text", shown(message)}};
    json["relatedLocations"].push_back(std::move(place));
  }

  const Report& report_;
  std::vector<Lane> lanes_;
  std::map<std::string, std::string> roots_;  // base id by root
  int sides_[2] = {0, 0};                     // roots named after each side
  int repositories_ = 0;
};

}  // namespace

std::string format_sarif(const Report& report) { return Sarif(report).run(); }

}  // namespace opguard
