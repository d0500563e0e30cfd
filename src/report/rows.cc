// Merges the two sides into one list of rows, and chooses those that a bounded file shows.
//
//   a          0    1    2              pairs (0, 0), (1, 2); a's 2 and b's 1 have no partner
//   b          0    1    2
//   rows       (0, 0)  (-, 1)  (1, 2)  (2, -)
//
// What only b has gets the place behind a's half of the last pair before it. The places are twice
// those of a, so that there is always one between two of them.
//
// kept_rows() gives the pivot's process half of the rows, and the others share the rest. In each,
// what differs comes first with its neighbours, from the front, and equal rows fill what is left.
// Counterexample: the first N rows of everything. Where the runs part late, they would all be
// equal.
//
// The cost: to sort the rows takes n log n; find_row() looks through one lane.
#include "report/rows.h"

#include <algorithm>
#include <map>

namespace opguard {
namespace {

// The rows of one pair of processes, by a. A pair that b ran elsewhere stands where a has it.
std::vector<LaneRow> merge(const ProcessPair& both) {
  std::vector<const Pair*> by_b;
  for (const Pair& pair : both.pairs) by_b.push_back(&pair);
  std::sort(by_b.begin(), by_b.end(), [](const Pair* x, const Pair* y) { return x->b < y->b; });
  // An event of a stands at 2a + 1. What only b has stands at the even place behind it, and at 0
  // before the first pair.
  std::vector<std::pair<uint64_t, LaneRow>> placed;
  placed.reserve(both.pairs.size() + both.only_a.size() + both.only_b.size());
  for (const Pair& pair : both.pairs)
    placed.push_back({2ull * pair.a + 1, {pair.a, pair.b, pair.equality}});
  for (uint32_t event : both.only_a) placed.push_back({2ull * event + 1, {event, kNone}});
  auto next = by_b.begin();
  uint64_t at = 0;
  for (uint32_t event : both.only_b) {
    for (; next != by_b.end() && (*next)->b < event; ++next) at = 2ull * (*next)->a + 2;
    placed.push_back({at, {kNone, event}});
  }
  // Stable: events of b alone that share a place stay in b's order.
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<LaneRow> rows;
  rows.reserve(placed.size());
  for (const auto& [place, row] : placed) rows.push_back(row);
  return rows;
}

}  // namespace

bool is_state(const Report& report, const Lane& lane, const LaneRow& row) {
  const bool in_a = row.a != kNone;
  const ProcessLog& log = in_a ? report.a.processes[lane.a] : report.b.processes[lane.b];
  return log.events.kind(in_a ? row.a : row.b) == EventKind::state;
}

std::vector<Lane> lanes_of(const Report& report) {
  std::vector<Lane> lanes;
  std::map<int32_t, uint32_t> seen;
  for (const ProcessPair& both : report.alignment.processes) {
    Lane lane;
    lane.a = both.a;
    lane.b = both.b;
    lane.rank = both.a >= 0 ? report.a.processes[both.a].rank : report.b.processes[both.b].rank;
    lane.ordinal = seen[lane.rank]++;
    lane.rows = merge(both);
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

// Looks through the event's lane from the front: it is asked for candidates and ranks, never for
// each row.
RowRef find_row(const std::vector<Lane>& lanes, int side, const EventRef& event) {
  if (event.process < 0) return {};
  for (size_t i = 0; i < lanes.size(); ++i) {
    const Lane& lane = lanes[i];
    if ((side == 0 ? lane.a : lane.b) != event.process) continue;
    const auto row = std::find_if(lane.rows.begin(), lane.rows.end(), [&](const LaneRow& row) {
      return (side == 0 ? row.a : row.b) == event.event;
    });
    if (row != lane.rows.end()) return {int32_t(i), uint32_t(row - lane.rows.begin())};
  }
  return {};
}

// An event that holds another ends after it, so only later ones are looked at. From the back, the
// outermost is met first.
std::vector<uint32_t> events_around(const ProcessLog& log, uint32_t event) {
  std::vector<uint32_t> around;
  for (uint32_t i = uint32_t(log.events.size()); i-- > event + 1;)
    if (log.events[i].thread == log.events[event].thread && log.events[i].begin <= event)
      around.push_back(i);
  return around;
}

namespace {

constexpr size_t kNeighbours = 3;        // rows kept beside one that differs
constexpr size_t kPivotNeighbours = 50;  // and beside a candidate

class KeptRows {
 public:
  KeptRows(const Report& report, const std::vector<Lane>& lanes) : report_(report), lanes_(lanes) {}

  // All rows where they fit. Else shares by lane, and on top of these the neighbourhoods of what
  // the verdict names. So a file has `max_rows` rows and some.
  std::vector<std::vector<bool>> choose(size_t max_rows) {
    size_t all = 0;
    for (const Lane& lane : lanes_) all += lane.rows.size();
    kept_.resize(lanes_.size());
    RowRef pivot;
    if (!report_.verdict.candidates.empty()) {
      const Pivot& first = report_.verdict.candidates.front();
      pivot =
          find_row(lanes_, first.a.process >= 0 ? 0 : 1, first.a.process >= 0 ? first.a : first.b);
    }
    for (size_t i = 0; i < lanes_.size(); ++i) {
      const size_t rows = lanes_[i].rows.size();
      kept_[i].assign(rows, all <= max_rows);
      if (all <= max_rows) continue;
      // Half is for the pivot's lane, the other lanes share the rest.
      // One lane alone gets all. Without a pivot every lane gets a share of one half.
      const bool has_pivot = pivot.lane == int32_t(i) || lanes_.size() == 1;
      const size_t share = has_pivot && lanes_.size() > 1 ? max_rows / 2
                           : lanes_.size() == 1           ? max_rows
                                                          : max_rows / 2 / (lanes_.size() - 1);
      keep_some(i, share);
    }
    if (all <= max_rows) return std::move(kept_);
    for (const Pivot& pivot : report_.verdict.candidates)
      for (int side : {0, 1})
        keep_around(find_row(lanes_, side, side == 0 ? pivot.a : pivot.b), kPivotNeighbours);
    for (const RankShare& share : report_.verdict.ranks)
      for (int side : {0, 1})
        keep_around(find_row(lanes_, side, side == 0 ? share.a : share.b), kNeighbours);
    keep_around(last_certified(report_, lanes_), kPivotNeighbours);
    return std::move(kept_);
  }

 private:
  void keep_around(const RowRef& at, size_t radius) {
    if (at.lane < 0) return;
    std::vector<bool>& kept = kept_[at.lane];
    const size_t last = std::min(kept.size(), at.row + radius + 1);
    for (size_t i = at.row - std::min<size_t>(at.row, radius); i < last; ++i) kept[i] = true;
  }

  // What differs with its neighbours, from the front; then equal rows, from the front.
  void keep_some(size_t index, size_t share) {
    const std::vector<LaneRow>& rows = lanes_[index].rows;
    std::vector<bool>& kept = kept_[index];
    size_t count = 0;
    auto keep = [&](size_t i) {
      if (kept[i] || count >= share) return;
      kept[i] = true;
      ++count;
    };
    for (size_t i = 0; i < rows.size() && count < share; ++i) {
      if (!rows[i].differs()) continue;
      const size_t last = std::min(rows.size(), i + kNeighbours + 1);
      for (size_t j = i - std::min(i, kNeighbours); j < last; ++j) keep(j);
    }
    for (size_t i = 0; i < rows.size() && count < share; ++i) keep(i);
  }

  const Report& report_;
  const std::vector<Lane>& lanes_;
  std::vector<std::vector<bool>> kept_;
};

}  // namespace

std::vector<std::vector<bool>> kept_rows(const Report& report, const std::vector<Lane>& lanes,
                                         size_t max_rows) {
  return KeptRows(report, lanes).choose(max_rows);
}

void LeftOut::add(const LaneRow& row) {
  ++(row.a == kNone ? only_b : row.b == kNone ? only_a : row.differs() ? differing : equal);
}

// Of a's event: the certificate is counted in a's order.
RowRef last_certified(const Report& report, const std::vector<Lane>& lanes) {
  const Pair* pair = last_certified(report.a, report.alignment);
  if (!pair) return {};
  return find_row(lanes, 0, {report.alignment.processes[pair->process].a, pair->a});
}

}  // namespace opguard
