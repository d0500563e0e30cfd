// case.json holds one point: every input as numbers, and what the two sides are predicted to leave
// there.
//
//   "values": {"x": [0.5, 1.25, ...], "token": [3, 0]}
//   "difference": {"output": "loss", "rank": 1, "position": [], "logical": 2.5, "plan": 1.25, ...}
//
// The point of the refutation names only the unknowns that have a part in it. All others get
// numbers that are a function of name and position, so the folder is the same each time it is
// written.
//
// Counterexample: a folder of a capture may be anybody's. A source named "../../.bashrc" in it is
// refused: no file is written outside of the folder.
#include "session/prove_replay.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "nlohmann/json.hpp"
#include "report/plan_proof_words.h"
#include "support/diagnostics.h"
#include "support/install.h"
#include "support/write_file.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What replay.py imports of python/opguard/prove.
constexpr const char* kLibrary[] = {"encode.py", "placement.py", "problem.py", "sources.py"};

// A 64-bit mix of name and position: the number of an unknown that the point does not name.
uint64_t mixed(const std::string& name, uint64_t position) {
  uint64_t x = 0xcbf29ce484222325u + position * 0x9e3779b97f4a7c15u;
  for (const char c : name) x = (x ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The point's numbers. What has no part in it gets some of its own, the same for both sides. They
// are positive, since a moment of an optimizer may be among them.
Json values_of(const proving::Captured& captured, const proving::Result& result) {
  Json values = Json::object();
  for (const auto& [name, input] : captured.inputs) {
    uint64_t count = 1;
    for (const int64_t extent : input.shape) count *= static_cast<uint64_t>(extent);
    Json& of_name = values[name] = Json::array();
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t r = mixed(name, i);
      double value = input.token ? static_cast<double>(r % std::max(1u, input.size))
                                 : static_cast<double>(r % 29 + 2) / 16;
      if (result.difference) {
        const auto& point = result.difference->point;
        const auto met = point.find(name + "[" + std::to_string(i) + "]");
        if (met != point.end()) value = met->second;
      }
      if (input.token)
        of_name.push_back(static_cast<int64_t>(value));
      else
        of_name.push_back(value);
    }
  }
  return values;
}

// Where the element is: in the rank's own tensor, and in the model's.
std::pair<int64_t, int64_t> indices_of(const proving::Captured& captured,
                                       const proving::Difference& d) {
  const proving::Trace& rank = captured.ranks.at(d.rank);
  const std::vector<int64_t>& shape = rank.outputs.at(d.output).shape;
  int64_t own = 0;
  for (size_t i = 0; i < shape.size(); ++i) own = own * shape[i] + d.position[i];
  const std::vector<int64_t>* place = proving::place_of_output(rank, d.output);
  return {own, place == nullptr ? own : place->at(static_cast<size_t>(own))};
}

// replay.py reads it, and the README's commands go by the order of `names`.
Json case_json(const proving::Captured& captured, const proving::Result& result) {
  Json names = Json::object();
  for (const auto& [name, input] : captured.inputs) names[name] = {{"shape", input.shape}};
  Json difference = nullptr;
  if (result.difference) {
    const proving::Difference& d = *result.difference;
    const auto [own, logical] = indices_of(captured, d);
    difference = {{"output", d.output}, {"rank", d.rank},           {"position", d.position},
                  {"plan_index", own},  {"logical_index", logical}, {"logical", d.logical},
                  {"plan", d.plan}};
  }
  return {{"version", 1},
          {"plan", "plan/" + fs::path(captured.plan).filename().string()},
          {"world", captured.world},
          {"dims", captured.dims},
          {"says", proof_headline(result)},
          {"difference", std::move(difference)},
          {"names", std::move(names)},
          {"values", values_of(captured, result)}};
}

// Two texts: of a difference in numbers, and of a plan that does not come to its end (a deadlock).
std::string readme(const proving::Captured& captured, const proving::Result& result) {
  const std::string plan = fs::path(captured.plan).filename().string();
  std::string text = "# What `opguard prove " + plan +
                     "` has refuted, running\n\n    refuted: " + proof_headline(result) + "\n";
  if (const auto& d = result.difference) {
    text += "      at " + proof_position(d->position) + ": the model has " +
            proof_number(d->logical) + ", the plan " + proof_number(d->plan) + "\n";
    if (d->made)
      text += "      made at " + fs::path(d->made->file).filename().string() + ":" +
              std::to_string(d->made->line) + ": " + proof_operator(*d->made) + "\n";
  }
  text += R"(
Both sides run here from one input, that of `case.json`. The plan's ranks are processes that talk by gloo.
Python with torch is enough, and what the plan imports: neither opguard nor a GPU is needed.

    python3 replay.py

)";
  if (!result.difference)
    return text +
           R"(It says what became of each rank: where it waits, what it raised, or that it ended. A rank whose step takes
longer than `--timeout` (60 s) waits for ever. Exit code 0: the plan does not come to its end. 1: it does.
)";
  return text +
         R"(It prints the two numbers that were predicted, and those that torch computes. Exit code 0: they are the same to
1e-6. 1: they are not. 3: a side did not run. It runs in float64, and in float32 (to 1e-3) where that does not do.

One side alone is a program like any other. `opguard diff --tolerance` runs both, and names the statement where they
part by more than rounding. In this folder:

    opguard diff --tolerance plan --run-a "python3 ../replay.py --side logical" --run-b "python3 ../replay.py --side plan"

Run a is the model. A tensor that no module holds is called by its place among the names of `case.json`:
`param_groups.0.0` is the first.
)";
}

llvm::Error copied(const fs::path& from, const fs::path& to) {
  std::error_code code;
  fs::create_directories(to.parent_path(), code);
  if (!code) fs::copy_file(from, to, code);
  if (!code) return llvm::Error::success();
  return make_error("--replay: cannot copy " + from.string() + " to " + to.string() + ": " +
                    code.message());
}

}  // namespace

llvm::Error can_replay_into(const std::string& folder) {
  std::error_code code;
  const fs::file_status status = fs::status(folder, code);
  if (!fs::exists(status)) return llvm::Error::success();
  if (fs::is_directory(status) && fs::is_empty(folder, code) && !code)
    return llvm::Error::success();
  return make_error("'" + folder + "' is not empty; give --replay a new folder");
}

std::string nothing_to_replay(const proving::Result& result) {
  if (result.verdict != proving::Verdict::refuted)
    return std::string("the plan is ") +
           (result.verdict == proving::Verdict::proved ? "proved" : "not refuted");
  return result.difference || result.at ? "" : "no number and no rank that waits shows it";
}

llvm::Error write_replay(const std::string& folder, const proving::Captured& captured,
                         const proving::Result& result) {
  if (llvm::Error error = can_replay_into(folder)) return error;
  const fs::path to = folder, plan = captured.plan, own = python_package_dir() + "/prove";
  std::vector<std::pair<fs::path, fs::path>> files = {{own / "replay.py", to / "replay.py"}};
  for (const char* name : kLibrary) files.emplace_back(own / name, to / "lib" / name);
  std::vector<std::string> sources = captured.sources;
  if (sources.empty()) sources.push_back(plan.filename().string());
  for (const std::string& name : sources) {
    // Captured files may be anybody's: nothing is written beside the folder.
    const fs::path below = fs::path(name).lexically_normal();
    if (below.is_absolute() || below.empty() || *below.begin() == "..")
      return make_error("--replay: the captured plan names a source that is not in its folder: " +
                        name);
    files.emplace_back(plan.parent_path() / name, to / "plan" / name);
  }
  std::error_code code;
  // Nothing is written where the plan has gone since it was captured.
  for (const auto& [from, target] : files)
    if (!fs::is_regular_file(from, code))
      return make_error("--replay: there is no " + from.string() + " any more");
  for (const auto& [from, target] : files)
    if (llvm::Error error = copied(from, target)) return error;
  if (llvm::Error error =
          write_file((to / "case.json").string(), case_json(captured, result).dump(1) + "\n"))
    return error;
  // Last: where it is, the others are whole.
  return write_file((to / "README.md").string(), readme(captured, result));
}

}  // namespace opguard
