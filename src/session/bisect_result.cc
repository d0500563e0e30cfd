// Two kinds of files are read back, and each has its rule for what does not fit:
//
//   bisect.json    of another search: an error, since its results would be taken for ours
//   result.json    of another version, or torn: no result, and the commit is run again
#include "session/bisect_result.h"

#include <filesystem>
#include <fstream>

#include "report/identity.h"
#include "support/diagnostics.h"
#include "support/text.h"
#include "support/write_file.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBisectVersion = 1;
constexpr size_t kMostSuspectLines = 20;

std::string lines_of(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json read_json(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file, nullptr, /*allow_exceptions=*/false);
}

// What decides about results. Not how many at once, nor where to write what.
// A key here is one that changes what a run computes, or how it is judged.
Json search_json(const BisectOptions& options, const Subjects& subjects) {
  std::vector<std::string> releases;
  if (subjects.releases)
    for (const BisectSubject& subject : subjects.all) releases.push_back(subject.id);
  return {{"opguard_bisect", kBisectVersion},
          {"good", subjects.good.id},
          {"bad", subjects.all.back().id},
          {"package", options.package},
          {"releases", releases},
          {"program", options.command},
          {"setup", options.setup},
          {"link", options.links},
          {"with", options.packages},
          {"exclude", options.sources.exclude},
          {"extend_exclude", options.sources.extend_exclude},
          {"include", options.sources.include},
          {"seed", options.deterministic ? Json(options.seed) : Json(nullptr)},
          {"ignore", options.report.ignore},
          {"ignore_files", options.report.ignore_files}};
}

Json subject_json(const BisectSubject& subject, bool release) {
  if (release) return {{"release", subject.id}};
  return {{"commit", subject.id},
          {"parents", subject.parents},
          {"author", subject.author},
          {"date", subject.date},
          {"title", subject.title}};
}

// "5d41d94abeaf Tidy the training loop"; of a release "einops 0.6.1". Titles are others' text:
// shown().
std::string name_of(const BisectSubject& subject) {
  return shown(subject.date.empty() ? subject.title : subject.key + " " + subject.title);
}

std::string name_of_id(const Subjects& subjects, const std::string& id) {
  if (id == subjects.good.id) return name_of(subjects.good);
  for (const BisectSubject& subject : subjects.all)
    if (subject.id == id) return name_of(subject);
  return id;
}

// now: without those that an earlier call has made.
uint64_t runs_of(const BisectResult& result, bool now) {
  uint64_t runs = 0;
  for (const Tried& tried : result.tried)
    if (!now || !tried.kept) runs += tried.judged.runs;
  return runs;
}

// "" for what is not there: a report of `diff` has no pivot where nothing was named.
std::string text_at(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string()
             ? shown(json[key].get<std::string>())
             : std::string();
}

std::string place_line(const char* side, const Json& place) {
  if (!place.is_object()) return "";
  const std::string function = text_at(place, "function");
  std::string line = std::string("    ") + side + " " + text_at(place, "place");
  if (!function.empty()) line += ": in " + function;
  const std::string text = text_at(place, "text");
  return line + "\n" + (text.empty() ? "" : "        " + text + "\n");
}

// Read from diff's JSON report: `diff` has run in another process.
std::string naming_text(const Subjects& subjects, const Naming& naming) {
  std::string text = "  against " + std::string(naming.parent ? "its parent " : "the reference ") +
                     name_of_id(subjects, naming.with) + ": ";
  if (subjects.releases) text = "  against " + name_of_id(subjects, naming.with) + ": ";
  if (!naming.why.empty()) return text + shown(naming.why) + "\n";
  const Json& verdict = naming.verdict;
  const Json& proof = verdict.contains("proof") ? verdict["proof"] : Json();
  const std::string state = text_at(proof, "state");
  text += text_at(verdict, "verdict") + (state == "proven" ? ", proven" : "") + ": " +
          text_at(verdict, "why") + "\n";
  const Json& pivot = verdict.contains("pivot") ? verdict["pivot"] : Json();
  if (!pivot.is_object()) return text;
  text += "  pivot: " + text_at(pivot, "kind") + " in " + text_at(pivot, "boundary") + ", " +
          text_at(pivot, "phase") + ", step " + std::to_string(pivot.value("step", 0)) + "\n";
  return text + place_line("a", pivot["a"]) + place_line("b", pivot["b"]);
}

}  // namespace

std::string mark_word(CommitMark mark) {
  switch (mark) {
    case CommitMark::good:
      return "good";
    case CommitMark::bad:
      return "bad";
    case CommitMark::skipped:
      return "skip";
    case CommitMark::unknown:
      return "unknown";
  }
  return "unknown";
}

llvm::Error write_result(const std::string& folder, const Judged& judged) {
  Json json{{"mark", mark_word(judged.mark)}, {"why", judged.why}};
  json["step"] = judged.step ? Json(*judged.step) : Json(nullptr);
  json["until"] = judged.until ? Json(*judged.until) : Json(nullptr);
  json["runs"] = judged.runs;
  json["seconds"] = judged.seconds;
  return write_file(folder + "/result.json", lines_of(json));
}

std::optional<Judged> read_result(const std::string& folder) {
  const Json json = read_json(folder + "/result.json");
  if (!json.is_object()) return std::nullopt;
  Judged judged;
  try {
    const auto word = json.at("mark").get<std::string>();
    for (CommitMark mark : {CommitMark::good, CommitMark::bad, CommitMark::skipped})
      if (word == mark_word(mark)) judged.mark = mark;
    judged.why = json.at("why").get<std::string>();
    if (!json.at("step").is_null()) judged.step = json.at("step").get<uint32_t>();
    if (!json.at("until").is_null()) judged.until = json.at("until").get<uint32_t>();
    judged.runs = json.at("runs").get<uint32_t>();
    judged.seconds = json.at("seconds").get<double>();
  } catch (const Json::exception&) {
    return std::nullopt;  // of another version: it is run again
  }
  return judged;
}

llvm::Error claim_folder(const std::string& work, const BisectOptions& options,
                         const Subjects& subjects) {
  const std::string path = work + "/bisect.json";
  const Json wanted = search_json(options, subjects);
  if (!std::filesystem::exists(path)) return write_file(path, lines_of(wanted));
  const Json there = read_json(path);
  if (!there.is_object()) return make_error(path + ": not a bisection's");
  for (const auto& [key, value] : wanted.items())
    if (!there.contains(key) || there[key] != value)
      return make_error("'" + work + "' holds another bisection: its '" + key +
                        "' is not the same; give --work a new folder");
  return llvm::Error::success();
}

//   5d41d94abeaf Tidy the training loop: bad (12 s): the parameters differ after a step, step 0
std::string tried_line(const Subjects& subjects, const Tried& tried) {
  const Judged& judged = tried.judged;
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.0f s", judged.seconds);
  std::string how = tried.kept ? "kept" : seconds;
  if (judged.until) how += ", to step " + std::to_string(*judged.until);
  if (!tried.like.empty()) how = "the same files as " + tried.like;
  std::string line =
      name_of(subjects.all[tried.subject]) + ": " + mark_word(judged.mark) + " (" + how + ")";
  if (judged.mark == CommitMark::bad && judged.step)
    line += ": " + judged.why + ", step " + std::to_string(*judged.step);
  else if (judged.mark != CommitMark::good)
    line += ": " + judged.why;
  return shown(line);
}

// The end of the text counts what was spent: runs, the reference's preflight, and what was kept.
std::string result_text(const Subjects& subjects, const BisectResult& result) {
  const std::string noun = noun_of(subjects);
  std::string text;
  switch (result.outcome) {
    case BisectOutcome::found: {
      const BisectSubject& first = subjects.all[result.suspects.front()];
      text = "first bad " + noun + ": " + name_of(first) + "\n";
      if (!subjects.releases)
        text += "  author: " + shown(first.author) + "\n  date: " + first.date + "\n";
      if (result.naming) text += naming_text(subjects, *result.naming);
      break;
    }
    case BisectOutcome::no_difference:
      text = "no first bad " + noun + ": " + name_of(subjects.all.back()) +
             " has every model value of " + name_of(subjects.good) + "\n";
      break;
    case BisectOutcome::remain:
      text = "could not tell: the first bad " + noun + " is one of " +
             counted(result.suspects.size(), noun) + "\n";
      for (size_t i = 0; i < result.suspects.size() && i < kMostSuspectLines; ++i)
        text += "  " + name_of(subjects.all[result.suspects[i]]) + "\n";
      if (result.suspects.size() > kMostSuspectLines)
        text += "  and " + std::to_string(result.suspects.size() - kMostSuspectLines) + " more\n";
      break;
  }
  uint64_t marks[4] = {};
  for (const Tried& tried : result.tried) ++marks[static_cast<size_t>(tried.judged.mark)];
  text += "\n" + counted(subjects.all.size(), noun) + ", " + std::to_string(result.tried.size()) +
          " judged: " + std::to_string(marks[1]) + " good, " + std::to_string(marks[2]) + " bad, " +
          std::to_string(marks[3]) + " skipped\n";
  if (result.reference_runs == 0) return text + "both hold the same files: nothing was run\n";
  text += "runs of the program: " + std::to_string(1 + runs_of(result, false)) +
          " (the reference, and " + std::to_string(runs_of(result, false)) +
          " to judge); the reference's preflight";
  if (result.naming) text += "; " + std::to_string(result.naming->runs) + " to name the operator";
  if (result.reference_kept)
    text += "; now " + std::to_string(runs_of(result, true)) + ", the others were kept";
  return text + "\n";
}

std::string result_json(const Subjects& subjects, const BisectResult& result) {
  Json json = identity_json(identity_now());
  const char* outcomes[] = {"found", "remain", "no_difference"};
  json["outcome"] = outcomes[static_cast<size_t>(result.outcome)];
  json["kind"] = noun_of(subjects);
  json["good"] = subject_json(subjects.good, subjects.releases);
  json["bad"] = subject_json(subjects.all.back(), subjects.releases);
  json["candidates"] = subjects.all.size();
  json["first_bad"] = result.outcome == BisectOutcome::found
                          ? subject_json(subjects.all[result.suspects.front()], subjects.releases)
                          : Json(nullptr);
  json["suspects"] = Json::array();
  for (uint32_t suspect : result.suspects) json["suspects"].push_back(subjects.all[suspect].id);
  json["tried"] = Json::array();
  for (const Tried& tried : result.tried) {
    Json one = subject_json(subjects.all[tried.subject], subjects.releases);
    one["mark"] = mark_word(tried.judged.mark);
    one["why"] = tried.judged.why;
    one["step"] = tried.judged.step ? Json(*tried.judged.step) : Json(nullptr);
    one["until"] = tried.judged.until ? Json(*tried.judged.until) : Json(nullptr);
    one["runs"] = tried.judged.runs;
    one["seconds"] = tried.judged.seconds;
    one["like"] = tried.like;
    one["kept"] = tried.kept;
    one["folder"] = "commits/" + subjects.all[tried.subject].key;
    json["tried"].push_back(std::move(one));
  }
  json["runs"] = {{"reference", result.reference_runs},
                  {"preflights", result.reference_runs},
                  {"judged", runs_of(result, false)},
                  {"judged_now", runs_of(result, true)},
                  {"naming", result.naming ? result.naming->runs : 0}};
  json["seconds"] = result.seconds;
  json["naming"] = nullptr;
  if (result.naming) {
    const Json& verdict = result.naming->verdict;
    json["naming"] = {{"with", result.naming->with},
                      {"parent", result.naming->parent},
                      {"why", result.naming->why},
                      {"verdict", verdict.is_object() ? verdict.value("verdict", "") : ""}};
    json["naming"]["pivot"] =
        verdict.is_object() && verdict.contains("pivot") ? verdict["pivot"] : Json(nullptr);
  }
  return lines_of(json);
}

}  // namespace opguard
