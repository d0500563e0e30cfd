// The indexes tell the step in which two runs part, in all logs at once. For what parted in it, a
// second look goes at those logs alone, and only at so many as kMostLooked. Their texts are read
// for the names.
#include "session/digest.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "align/judge/parted_parts.h"
#include "align/pair/equal_start.h"
#include "align/pair/run.h"
#include "align/pair/run_digest.h"
#include "report/reasons.h"
#include "session/remote_logs.h"
#include "support/diagnostics.h"
#include "support/exit_code.h"
#include "support/say.h"
#include "support/text.h"
#include "support/url.h"
#include "support/write_file.h"

namespace opguard {
namespace {

using Json = nlohmann::ordered_json;

// Of so many ranks that differ the parts of the step are looked at.
constexpr size_t kMostLooked = 4096;

// 16 digits, with zeros in front.
std::string hex(uint64_t digest) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  return text;
}

std::string counts_text(uint64_t steps, uint64_t records) {
  return counted(steps, "step") + ", " + counted(records, "record");
}

std::string run_text(const RunDigest& run) {
  uint64_t steps = 0, records = 0;
  for (const RankDigest& rank : run.ranks)
    steps = std::max(steps, rank.steps), records += rank.records;
  return hex(run.digest) + ": " + counted(run.ranks.size(), "log") + ", " +
         counts_text(steps, records) + "\n";
}

std::string rank_text(const RankDigest& rank) {
  return "  rank " + std::to_string(rank.rank) + "  " + hex(rank.digest) + "  " +
         counts_text(rank.steps, rank.records) + (rank.closed ? "" : "; the log is not closed") +
         "\n";
}

// "" or which log is not.
std::string unclosed(const RunDigest& run) {
  for (const RankDigest& rank : run.ranks)
    if (!rank.closed) return "the log of rank " + std::to_string(rank.rank) + " is not closed";
  return "";
}

Json run_json(const RunDigest& run) {
  Json json = {{"digest", hex(run.digest)}, {"logs", Json::array()}};
  for (const RankDigest& rank : run.ranks)
    json["logs"].push_back({{"rank", rank.rank},
                            {"place", rank.place},
                            {"steps", rank.steps},
                            {"records", rank.records},
                            {"digest", hex(rank.digest)},
                            {"closed", rank.closed}});
  return json;
}

// Where two runs part. `logs` 0: one run alone has that step.
struct Parting {
  uint32_t step = kNone;
  uint64_t logs = 0;  // in which it differs
  std::string parts;  // "": nothing is told of them
};

std::string parting_text(const Parting& parting) {
  const std::string step = "step " + std::to_string(parting.step);
  if (parting.logs == 0) return "One run alone has " + step + ": they are equal until then\n";
  return "The runs part in " + step + ", in " + counted(parting.logs, "log") +
         (parting.parts.empty() ? "" : "; " + parting.parts) + "\n";
}

// Digests of other ranks are of other things: that is an error and no difference.
bool are_of_the_same_ranks(const RunDigest& a, const RunDigest& b) {
  return std::equal(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), b.ranks.end(),
                    [](const RankDigest& x, const RankDigest& y) {
                      return x.rank == y.rank && x.place == y.place;
                    });
}

// The texts of a log, and hardly an event.
llvm::Expected<Run> load_texts(const std::string& dir, const std::vector<std::string>& logs,
                               const Bring* bring) {
  ReadFrom read{.only = {logs.begin(), logs.end()}, .bring = bring};
  for (const std::string& log : logs) read.events[log] = kToEnd - 1;
  return load_run(dir, read);
}

// step kNone: the indexes agree in every step that both have.
llvm::Expected<Parting> find_parting(const std::string& dir_a, const std::string& dir_b,
                                     const Bring* bring) {
  std::string why;
  auto indexed = IndexedRuns::open(dir_a, dir_b, why, bring);
  if (!indexed) return make_error(why);
  Parting parting;
  parting.step = indexed->first_apart();
  if (parting.step == kNone) return parting;
  std::vector<std::string> logs_a, logs_b;
  for (const IndexedRuns::ApartLog& apart : indexed->apart_logs()) {
    ++parting.logs;
    if (logs_a.size() == kMostLooked) continue;
    logs_a.push_back(apart.path_a);
    logs_b.push_back(apart.path_b);
  }
  if (logs_a.empty()) return parting;
  auto few = IndexedRuns::open(logs_a, logs_b, why, bring);
  if (!few) return make_error(why);
  auto a = load_texts(dir_a, logs_a, bring), b = load_texts(dir_b, logs_b, bring);
  if (!a) return llvm::joinErrors(a.takeError(), b ? llvm::Error::success() : b.takeError());
  if (!b) return b.takeError();
  if (const auto groups = differing_groups(*few, *a, *b))
    parting.parts = words(*a, *b, parted_parts(*groups));
  return parting;
}

}  // namespace

int digest_logs(const DigestOptions& options) {
  std::vector<std::string> dirs = {options.dir_a};
  if (!options.dir_b.empty()) dirs.push_back(options.dir_b);
  auto remote = RemoteLogs::open(dirs, options.python);
  if (!remote) return fail(llvm::toString(remote.takeError()));
  const Bring* bring = (*remote)->bring();
  auto failed = [&](llvm::Error error) {
    return fail((*remote)->as_given(llvm::toString(std::move(error))));
  };
  std::vector<RunDigest> runs;
  Json json = {{"runs", Json::array()}};
  for (const std::string& dir : dirs) {
    auto run = run_digest((*remote)->here(dir), options.last_step, bring);
    if (!run) return failed(run.takeError());
    if (const std::string which = unclosed(*run); dirs.size() > 1 && !which.empty())
      return fail(url_name(dir) + ": " + which + ": give each run alone, with --step");
    json["runs"].push_back(run_json(*run));
    runs.push_back(std::move(*run));
  }
  std::string text = run_text(runs[0]);
  int code = kYes;
  if (runs.size() == 1) {
    if (options.last_step != kNone)
      text = "steps up to " + std::to_string(options.last_step) + "  " + text;
    for (const RankDigest& rank : runs[0].ranks) text += rank_text(rank);
  } else if (runs[0].digest == runs[1].digest) {
    text = "equal  " + text;
  } else {
    if (!are_of_the_same_ranks(runs[0], runs[1])) return fail("the runs have logs of other ranks");
    code = kNo;
    text = "a  " + run_text(runs[0]) + "b  " + run_text(runs[1]);
    auto parting =
        find_parting((*remote)->here(options.dir_a), (*remote)->here(options.dir_b), bring);
    if (!parting) return failed(parting.takeError());
    text += parting_text(*parting);
    json["step"] = parting->step;
    json["logs_apart"] = parting->logs;
    json["parts"] = parting->parts;
  }
  if (bring != nullptr) say("note: " + (*remote)->told());
  if (!options.json.empty())
    if (auto error = write_file(options.json, json.dump(1) + "\n"))
      return fail(llvm::toString(std::move(error)));
  return print_lines((*remote)->as_given(text)) ? code : kCouldNotTell;
}

}  // namespace opguard
