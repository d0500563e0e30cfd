// A rank's digest is the chain of its last step that is meant. Chains hold all steps before, so one
// entry of the index says it. The run's is the sum of its ranks' digests, each mixed with rank,
// place and number of steps.
//
//   closed log    steps 0 .. 39   records of all, from the index's end
//   open log      steps 0 .. 38   not the last: how many records a step has, the next one tells
//
// Counterexample: a log that lost records. Its digest would say less than it seems to.
#include "align/pair/run_digest.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>

#include "record/entry_search.h"
#include "record/record.h"
#include "record/step_index.h"
#include "support/diagnostics.h"

namespace opguard {
namespace {

// A step of splitmix64 (Steele, Lea, Flood 2014) for each word.
uint64_t digest_of(std::initializer_list<uint64_t> words) {
  uint64_t digest = 0;
  for (const uint64_t word : words) {
    digest = (digest ^ word) + 0x9e3779b97f4a7c15u;
    digest = (digest ^ digest >> 30) * 0xbf58476d1ce4e5b9u;
    digest = (digest ^ digest >> 27) * 0x94d049bb133111ebu;
    digest ^= digest >> 31;
  }
  return digest;
}

// "" or why not.
std::string digest_rank(const std::string& log, uint32_t last_step, const Bring* bring,
                        RankDigest& rank) {
  StepIndex index;
  if (!index.open(step_index_path(log), bring)) return index.why();
  rank.closed = index.end().has_value();
  if (rank.closed && index.end()->lost > 0) return log + ": has lost records";
  // How many records a step has the next one tells, or the end.
  const uint64_t steps = rank.closed ? index.steps() : std::max<uint64_t>(index.steps(), 1) - 1;
  rank.steps = steps;
  if (last_step != kNone) {
    const auto is_behind = [&](uint64_t i) -> std::optional<bool> {
      const auto entry = index.at(i);
      if (!entry) return {};
      return entry->step > last_step;
    };
    const auto behind = first_entry(steps, is_behind, last_step);
    if (!behind) return log + ": its index of steps cannot be read";
    rank.steps = *behind;
  }
  if (rank.steps == index.steps()) {
    rank.records = rank.closed ? index.end()->records : 0;
  } else {
    const auto next = index.at(rank.steps);
    if (!next) return log + ": its index of steps cannot be read";
    rank.records = next->records_before;
  }
  if (rank.steps == 0) return "";
  const auto last = index.at(rank.steps - 1);
  if (!last) return log + ": its index of steps cannot be read";
  rank.digest = digest_of({last->chain, last->moved_chain});
  return "";
}

}  // namespace

int32_t rank_of_log(const std::string& path) {
  int rank = 0;
  std::sscanf(std::filesystem::path(path).filename().c_str(), "rank%d-", &rank);
  return rank;
}

llvm::Expected<RunDigest> run_digest(const std::string& dir, uint32_t last_step,
                                     const Bring* bring) {
  std::string why;
  const std::vector<std::string> logs = log_files(dir, why);
  if (logs.empty()) return make_error(why);
  if (bring != nullptr) {
    std::vector<FilePiece> pieces;
    for (const std::string& log : logs)
      for (FilePiece& piece : StepIndex::opening(step_index_path(log)))
        pieces.push_back(std::move(piece));
    why = (*bring)(pieces);
    if (!why.empty()) return make_error(why);
  }
  RunDigest run;
  std::map<int32_t, uint32_t> seen;
  for (const std::string& log : logs) {
    RankDigest rank;
    rank.rank = rank_of_log(log);
    rank.place = seen[rank.rank]++;
    why = digest_rank(log, last_step, bring, rank);
    if (!why.empty()) return make_error(why);
    run.digest +=
        digest_of({static_cast<uint32_t>(rank.rank), rank.place, rank.steps, rank.digest});
    run.ranks.push_back(rank);
  }
  return run;
}

}  // namespace opguard
