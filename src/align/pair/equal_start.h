// align/pair/equal_start.h: how far two runs are equal by the digests of their steps, so that what
// differs is all that must be read.
//
//   a   steps 0 to 99,999      17 reads of a's index, 17 of b's: step 73,104 is the first to differ
//   b   steps 0 to 99,999      both logs are read from step 73,103 on
//
// Every step before it has equal events on both sides, whatever the order in which they came
// (record/step_digest.h). So the pairs there are counted, and nothing more is asked of them. Among
// them may be states of generators that differ from the start, and that nobody drew from.
//
// Counterexample: a log without an index, that lost records, or whose process was killed. Nothing
// is told then, and all is read.
// The cost: the logarithm of the steps, in blocks of 4 KiB, for each rank.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "record/bring.h"
#include "record/record.h"
#include "record/step_index.h"

namespace opguard {

// What is left out of two runs that are equal there.
struct EqualStart {
  uint32_t step = 0;     // the first that is read
  uint64_t steps = 0;    // that are not read, of the longest rank
  uint64_t events = 0;   // of these, of each run, all ranks together: so many pairs
  uint64_t unmoved = 0;  // of these pairs: generators' states that differ, and nobody drew from
  uint64_t records = 0;  // of each run
  std::map<std::string, uint64_t> from_a, from_b;  // ReadOptions::from_event of each log
  // What is before it was removed (`run --keep`): more cannot be read.
  bool is_first_kept = false;
  // Of a window: the last step that is read, and ReadOptions::until_event of each log that goes on.
  uint32_t last_step = kNone;
  std::map<std::string, uint64_t> until_a, until_b;
  bool reads_all() const { return events == 0 && last_step == kNone; }
};

class IndexedRuns {
 public:
  // Nothing: `why` says what is missing of which log. bring: nullptr, or what outlives this.
  static std::optional<IndexedRuns> open(const std::string& dir_a, const std::string& dir_b,
                                         std::string& why, const Bring* bring = nullptr);
  // The same of these logs, those of one rank at one place.
  static std::optional<IndexedRuns> open(const std::vector<std::string>& a,
                                         const std::vector<std::string>& b, std::string& why,
                                         const Bring* bring = nullptr);

  // The first step in which some rank's logs differ, or that one run alone has; kNone: none.
  uint32_t first_apart() const { return first_apart_; }
  // The first step that all logs still hold whole: `run --keep` removed those before it.
  uint32_t kept_from() const { return kept_from_; }
  // Of the longest rank: how many steps; of all ranks of a: events and records.
  uint64_t steps() const;
  uint64_t events() const;
  uint64_t records() const;
  // What may be left out where `margin` steps before the first that differs are read as well; where
  // none differs, all but the last `margin`.
  EqualStart start(uint32_t margin);
  // Reads so many steps behind the first that differs, and no more. It stays as it is where no step
  // differs, or no log goes on.
  void end_behind(uint32_t steps, EqualStart& start);
  // Pairs of all ranks in the steps before this one, one that does not differ: equal ones, as far
  // as the digests tell. 0 where an index cannot be read.
  uint64_t equal_before(uint32_t step);
  // The logs of the first step that differs in which it does, with where their groups of it are.
  struct ApartLog {
    size_t log = 0;  // its place among those of a run
    std::string path_a, path_b;
    uint32_t salt_a = 0, salt_b = 0;
    uint64_t groups_a = 0, groups_b = 0;  // StepEntry::groups_at
  };
  std::vector<ApartLog> apart_logs();
  const Bring* bring() const { return bring_; }
  // Whether these are the logs that the indexes are of.
  bool belong_to(const Run& a, const Run& b) const;

  uint64_t reads() const;
  uint64_t bytes_read() const;

 private:
  struct Both {
    std::string path_a, path_b;
    StepIndex a, b;
  };
  bool find_first_apart();
  bool find_kept();
  // What all logs hold before a step that does not differ.
  struct Before {
    uint64_t events = 0, records = 0, unmoved = 0, steps = 0;
    std::map<std::string, uint64_t> from_a, from_b;  // events, by log
  };
  std::optional<Before> before(uint32_t step);
  // Of each log of one run the first entry that is of this step or of a later one; brought.
  std::optional<std::vector<uint64_t>> first_entries_of(uint32_t step, StepIndex Both::* run);

  std::vector<Both> logs_;
  const Bring* bring_ = nullptr;
  uint32_t first_apart_ = kNone, last_ = 0, kept_from_ = 0;
};

}  // namespace opguard
