// align/judge/verdict.h: what an alignment means: identical, or the pivot and why.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "align/judge/heuristics.h"
#include "align/judge/reason.h"
#include "align/pair/alignment.h"
#include "record/event_ref.h"
#include "record/record.h"

namespace opguard {

enum class Outcome : uint8_t {
  identical,
  diverged,
  inconclusive,
  equivalent  // other bits, the same within rounding: align/tolerance
};
enum class PivotKind : uint8_t {
  value,
  scalar,
  structure,
  input,
  race,
  // Of a comparison within rounding: align/tolerance/judge_tolerance.h
  missing_reduce,  // ranks hold parts of a sum that nobody adds up
  scale,           // a multiple
  layout,          // the right elements at other places
  omits,           // a piece that no rank holds, a parameter that no update writes
  replicas,        // ranks that should agree do not
  stale,           // the value of another layer, micro-batch or step
  mapping,         // a layer that no rank holds
  precision,       // rounding of a narrower type
  declared         // a library says that ranks hold it otherwise
};

// An operator at which the runs part. At least one side is set.
struct Pivot {
  PivotKind kind = PivotKind::value;
  EventRef a, b;
  uint32_t slot = kNone;  // index in ProcessLog::slots of side b's (else a's) first differing slot
  Reasons why{};          // one sentence: report/reasons.h
  Heuristics heuristics{};  // what it was chosen by
  // Of a region: the operators that stand on each side between what both runs hold and the reader
  // that both have, by event. Such are {q @ k, scores += mask, softmax} against {sdpa}. Else empty.
  std::array<std::vector<EventRef>, 2> region{};
  // Where it shows, of each side. As `value` a draw from a moved generator, as `input` the node
  // that reads autograd's sum. As `race` who saw other bytes, behind the first use.
  std::array<EventRef, 2> shown{};
  PivotKind shown_as = PivotKind::value;
  // The call to name in place of the operator, of each side that makes one: callers.h.
  std::array<std::optional<Location>, 2> call{};
  // The text that was proven to be the cause, by running b with a's in its place, where it stands
  // elsewhere. Of each side that has some; named in place of the operator and of a call.
  std::array<std::optional<Location>, 2> text{};
  uint32_t tensor = kNone;  // of a comparison within rounding: which of its tensors
  bool operator==(const Pivot&) const = default;
};

// A generator of random numbers whose state is not the same in both runs.
struct StateDifference {
  std::string generator;    // "torch.cpu", "python"
  EventRef a, b;            // the first pair of records that differs
  uint64_t records = 0;     // pairs that hold it
  uint64_t differing = 0;   // of these
  bool from_start = false;  // the first of them differs
  bool to_end = false;      // the last of them differs
  bool drawn = false;       // the state moves: somebody draws from it, or seeds it again
  bool operator==(const StateDifference&) const = default;
};

enum class RankRole : uint8_t {
  equal,     // every model value agrees, and nothing differs on the way to one
  origin,    // the difference began here
  received,  // a collective brought it
  unknown,   // it differs; neither an operator nor a collective of its log says since when
};

// How a difference came to one rank of several.
struct RankShare {
  int32_t rank = 0;
  RankRole role = RankRole::equal;
  EventRef a, b;              // origin: where it began; received: where the collective was done, or
                              // the step whose gradients were averaged below Python
  uint32_t slot = kNone;      // of side b's, else a's, event: what differs first
  std::vector<int32_t> from;  // received: the ranks that gave other values to the collective
  bool operator==(const RankShare&) const = default;
};

inline constexpr size_t kMostCandidates = 6;

struct Verdict {
  Outcome outcome = Outcome::inconclusive;
  Reasons why;                    // one sentence: report/reasons.h
  int longer = -1;                // diverged, as this side goes on where the other has ended
  std::vector<Pivot> candidates;  // [0] is the pivot; at most 6
  // Identical or not known: the pairs that differ, none of which reaches what the runs are judged
  // by.
  std::vector<Pair> unreached;
  uint64_t harmless = 0;  // differing events before the pivot that reach no model value
  std::vector<StateDifference> states;
  std::vector<RankShare> ranks;  // diverged, of several ranks: each of them, by rank
  std::vector<Reasons> notes;    // what one run alone has, what could not be compared
};

// Judgement by value flow: docs/design/judgement.md.
Verdict judge(const Run& a, const Run& b, const Alignment& alignment);
// The same beside what rules hide, and without the heuristics `off`.
class HiddenRecords;
// `ended_early`: a run failed or its log was cut short, so no model value may show what it was
// computing. Where none differs, candidates are what leads to values that differ at the end. Else
// they are operators of one run alone, the nearest to the end first.
Verdict judge(const Run& a, const Run& b, const Alignment& alignment, const HiddenRecords& hidden,
              const Heuristics& off = {}, bool ended_early = false);

}  // namespace opguard
