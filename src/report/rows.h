// report/rows.h: the events of two aligned processes side by side, in one order.
//
//   a   embed   norm             linear   relu
//   b   embed   norm    gelu              relu
//       equal   equal   only b   only a   differs
//
// Pairs come in the order of a; what only b has follows the pair before it. The page and the trace
// for Perfetto draw these rows, so that partners stand under each other.
//
// Counterexample: by b's order a pair that moved would stand far from its place in a. It is shown
// once, where a has it.
//
// The cost: a sort of all pairs. Of more than kMostRows rows the ones near differences are kept.
#pragma once

#include <cstdint>
#include <vector>

#include "report/report.h"

namespace opguard {

// A pair of events, or one without a partner.
struct LaneRow {
  uint32_t a = kNone, b = kNone;  // index in each side's ProcessLog::events
  Equality equality = Equality::equal;
  bool paired() const { return a != kNone && b != kNone; }
  bool differs() const {
    return !paired() || (equality != Equality::equal && equality != Equality::hidden);
  }
};

// Two processes compared, or one that only one run has. Pairs come in the order of a; what only b
// has follows the pair before it.
struct Lane {
  int32_t a = -1, b = -1;  // index in Run::processes
  int32_t rank = 0;
  uint32_t ordinal = 0;  // which of its rank's processes
  std::vector<LaneRow> rows;
};

// A record of a random generator's state. Seeded unlike, it differs from the first row on, so it is
// told behind operators that differ.
bool is_state(const Report& report, const Lane& lane, const LaneRow& row);

// One lane for each pair of processes, in the alignment's order. Events of steps that one run alone
// makes (ProcessPair::besides_a) are in no row.
std::vector<Lane> lanes_of(const Report& report);

// Where an event is. lane -1: in none.
struct RowRef {
  int32_t lane = -1;
  uint32_t row = 0;
  bool operator==(const RowRef&) const = default;
};

// side 0: a, 1: b.
RowRef find_row(const std::vector<Lane>& lanes, int side, const EventRef& event);

// The events of its thread that an event ran inside of, outermost first.
std::vector<uint32_t> events_around(const ProcessLog& log, uint32_t event);

// Rows that one file shows of a long report; the others are counted where they were.
inline constexpr size_t kMostRows = 200'000;

// Which rows a file of about `max_rows` shows, by lane: all, or some. These are what differs and
// its neighbours, the candidates and the end of the certified prefix, then what comes first.
std::vector<std::vector<bool>> kept_rows(const Report& report, const std::vector<Lane>& lanes,
                                         size_t max_rows);

// Rows left out behind one another, by what they are.
struct LeftOut {
  uint64_t equal = 0, differing = 0, only_a = 0, only_b = 0;
  uint64_t rows() const { return equal + differing + only_a + only_b; }
  // `hidden` rows count as equal: LaneRow::differs.
  void add(const LaneRow& row);
};

// The last pair of the certified prefix; lane -1: nothing is certified.
RowRef last_certified(const Report& report, const std::vector<Lane>& lanes);

}  // namespace opguard
