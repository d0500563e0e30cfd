// Findings as lines for people and as JSON for programs.
//
//   1 random numbers and data order
//     violated    python's generator         drawn from without a seed by shuffle()
//                 train.py:8
//                     random.shuffle(rows)
//     controlled  torch's generators         seeded with 1, by the program, train.py:6
//
// What is violated gets its place in lines of its own, since somebody has to go there. The rest is
// one line each.
//
// Counterexample: names of the program as they are. A file or a function may be called anything, an
// escape sequence too, so all of it goes through shown().
//
// The cost: findings times surfaces.
#include <algorithm>
#include <filesystem>

#include "determinism/words.h"
#include "support/text.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSurfaceNames[] = {"random", "arithmetic", "collectives", "resume", "layout"};
constexpr const char* kHoldNames[] = {"controlled", "left", "violated"};
constexpr const char* kSetters[] = {"library", "environment", "code", "control"};
constexpr const char* kSubjects[] = {
    "generator", "entropy",  "hash_order", "loader",   "workers",   "sampler", "rank_seeds",
    "flag",      "variable", "cuda",       "op",       "operators", "compile", "group",
    "buckets",   "restored", "written",    "position", "no_resume", "layout"};
constexpr const char* kGrounds[] = {"set",
                                    "by_default",
                                    "unused",
                                    "unset",
                                    "drawn_unseeded",
                                    "seeded_by_system",
                                    "seed_differs",
                                    "seeded_again",
                                    "seeded_anew",
                                    "from_system",
                                    "too_late",
                                    "changed",
                                    "by_time",
                                    "no_kernel",
                                    "follows_torch",
                                    "unseeded_order",
                                    "own_seed",
                                    "in_order",
                                    "order_differs",
                                    "batches_differ",
                                    "same_in_workers",
                                    "numpy_in_workers",
                                    "workers_seeded",
                                    "epoch_stays",
                                    "epoch_unsaid",
                                    "epoch_unseen",
                                    "epoch_set",
                                    "ranks_differ",
                                    "ranks_agree",
                                    "restored",
                                    "missing",
                                    "seeded_after",
                                    "not_written",
                                    "written_whole",
                                    "skipped",
                                    "unknown",
                                    "rebuilt",
                                    "fixed_order"};

// The texts above stand in the order of the enums. The static_asserts count them; no two that were
// swapped.
template <typename T>
size_t index_of(T value) {
  return static_cast<size_t>(value);
}
static_assert(std::size(kSubjects) == static_cast<size_t>(Subject::layout) + 1);
static_assert(std::size(kGrounds) == static_cast<size_t>(Ground::fixed_order) + 1);

constexpr size_t kThing = 26;  // columns of what a row is about

std::string short_path(const std::string& file, const std::string& folder) {
  const std::string start = folder + "/";
  return !folder.empty() && file.starts_with(start) ? file.substr(start.size()) : file;
}

std::string place_words(const CallSite& place, const std::string& folder) {
  return shown(short_path(place.file, folder)) + ":" + std::to_string(place.line) +
         (place.function.empty() || place.function.starts_with("<")
              ? ""
              : " in " + shown(place.function));
}

std::string padded(std::string text, size_t columns) {
  if (text.size() < columns) text.append(columns - text.size(), ' ');
  return text;
}

}  // namespace

std::string surface_title(Surface surface) {
  switch (surface) {
    case Surface::random:
      return "1 random numbers and data order";
    case Surface::arithmetic:
      return "2 arithmetic of the library";
    case Surface::collectives:
      return "3 collectives";
    case Surface::resume:
      return "4 resume from a checkpoint";
    case Surface::layout:
      return "5 parallel layout";
  }
  return "";
}

const char* hold_name(Hold hold) { return kHoldNames[index_of(hold)]; }

std::string thing_of(const Finding& finding) {
  switch (finding.subject) {
    case Subject::generator:
      return finding.name + "'s generator" + (finding.name == "torch" ? "s" : "");
    case Subject::hash_order:
      return "PYTHONHASHSEED";
    case Subject::loader:
      return "DataLoader's order";
    case Subject::workers:
      return "DataLoader's workers";
    case Subject::rank_seeds:
      return "torch's seed by rank";
    case Subject::cuda:
      return "CUDA's switches";
    case Subject::operators:
      return "operators";
    case Subject::group:
      return "process group";
    case Subject::buckets:
      return "DDP's buckets";
    case Subject::written:
      return "checkpoint";
    case Subject::position:
      return "position of the data";
    case Subject::no_resume:
      return "resume";
    case Subject::layout:
      return "layout";
    default:
      return finding.name;
  }
}

// Of a fault the place says already that it is the program's. Where a value was set and is wrong
// all the same, it is said.
std::string setter_words(const Finding& finding) {
  const bool right = finding.hold == Hold::controlled || finding.ground == Ground::by_time ||
                     finding.ground == Ground::too_late;
  switch (finding.by) {
    case SetBy::environment:
      return ", by your environment";
    case SetBy::control:
      return ", by opguard's control";
    case SetBy::code:
      return right ? ", by the program" : "";
    case SetBy::nobody:
      return finding.ground == Ground::by_default && !finding.value.empty() &&
                     finding.subject == Subject::flag
                 ? ", by default"
                 : "";
  }
  return "";
}

std::string determinism_table(const std::vector<Finding>& findings, const std::string& folder) {
  std::string text;
  for (const Surface surface : kSurfaces) {
    text += (text.empty() ? "" : "\n") + surface_title(surface) + "\n";
    for (const Finding& finding : findings) {
      if (finding.surface != surface) continue;
      text += "  " + padded(hold_name(finding.hold), 12) +
              padded(shown(thing_of(finding)), kThing) + " " + shown(words_of(finding)) +
              setter_words(finding);
      if (!finding.place.known()) {
        text += "\n";
        continue;
      }
      const std::string place = place_words(finding.place, folder);
      if (finding.hold == Hold::violated) {
        text += "\n" + std::string(14, ' ') + place + "\n";
        if (!finding.place.text.empty())
          text += std::string(18, ' ') + shown(finding.place.text) + "\n";
      } else {
        text += ", " + place + "\n";
      }
    }
  }
  return text;
}

// Every field of every finding, in this order; a place that is not known is null.
Json findings_array(const std::vector<Finding>& findings) {
  Json rows = Json::array();
  for (const Finding& finding : findings) {
    Json row = {{"surface", kSurfaceNames[index_of(finding.surface)]},
                {"state", hold_name(finding.hold)},
                {"subject", kSubjects[index_of(finding.subject)]},
                {"name", finding.name},
                {"ground", kGrounds[index_of(finding.ground)]},
                {"value", finding.value},
                {"by", kSetters[index_of(finding.by)]},
                {"place", nullptr},
                {"names", finding.names},
                {"numbers", finding.numbers},
                {"words", words_of(finding)}};
    if (finding.place.known())
      row["place"] = {{"file", finding.place.file},
                      {"line", finding.place.line},
                      {"function", finding.place.function},
                      {"text", finding.place.text},
                      {"through", finding.place.through}};
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace opguard
