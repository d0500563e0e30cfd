// fleet/part.h: what some ranks of two runs tell, small enough to be carried to one place.
//
//   8 machines, each with the logs of 128 ranks of both runs
//   opguard align A B --part 3/8 -o part3.json     some 300 bytes a rank, whatever their logs hold
//   opguard align --merge part*.json               one verdict: merge_parts.h
//
// A rank's part is made of its own logs alone. It is the same whoever makes it, and again.
// Counterexample: who gave a rank another value. Its own log names the collective that brought it.
// The rest is told by the others' parts.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "record/event.h"

namespace opguard {

enum class RankState : uint8_t {
  equal,    // all steps, by their digests or by their events
  differs,  // here, and first by the operator that is named
  open      // nothing can be told: `why`
};

// An operator of one rank, as both runs name it.
struct RankFinding {
  // `kind`: of the pivot, "value", "input". `name`: the operator, "torch.matmul". `why`: the
  // reasons in words.
  std::string kind, boundary, name, file, phase, why;
  uint32_t line = 0;
  // As of the event (record/event.h).
  uint32_t step = 0, micro_batch = 0, occurrence = 0;
  // A collective gave it what differs, where all it gave to the collective is equal.
  bool received = false;
  std::string group;  // of that collective: its members' ranks, and its number among the group's
  uint32_t sequence = 0;
  // How far each group's collectives were before it: the number of the last one.
  std::map<std::string, uint32_t> passed;
  bool operator==(const RankFinding&) const = default;
};

struct RankPart {
  int32_t rank = 0;
  uint32_t place = 0;  // among the processes of this rank
  RankState state = RankState::open;
  std::string why;     // open: what is missing; differs: why no operator is named, where none is
  uint64_t steps = 0;  // of run a
  uint64_t pairs = 0, records = 0;  // of run a; certified equal before what differs
  uint64_t certified = 0;
  uint64_t unread_steps = 0;          // told by digests alone
  std::vector<RankFinding> findings;  // differs: the pivot first, at most kMostFindings
  // By what the program calls them, its groups of processes: "tp": "0-3". They are run a's.
  std::map<std::string, std::string> groups;
  bool operator==(const RankPart&) const = default;
};

inline constexpr size_t kMostFindings = 3;

struct Part {
  std::string a, b;             // folders, as they were named
  uint32_t of = 1;              // how many parts there are in all
  std::set<uint32_t> parts;     // which of them this is, from 1
  std::string refused;          // settings under which nothing is compared, "" for none
  std::vector<RankPart> ranks;  // by rank and place
  bool operator==(const Part&) const = default;
};

}  // namespace opguard
