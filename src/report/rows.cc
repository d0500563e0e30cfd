#include "report/rows.h"

#include <algorithm>
#include <map>

namespace opguard {
namespace {

std::vector<LaneRow> merge(const ProcessPair& both) {
  std::vector<const Pair*> by_b;
  for (const Pair& pair : both.pairs) by_b.push_back(&pair);
  std::sort(by_b.begin(), by_b.end(), [](const Pair* x, const Pair* y) { return x->b < y->b; });
  // Twice the position in a; odd: between two of them.
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
  return log.events[in_a ? row.a : row.b].kind == EventKind::state;
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

std::vector<uint32_t> events_around(const ProcessLog& log, uint32_t event) {
  std::vector<uint32_t> around;
  for (uint32_t i = uint32_t(log.events.size()); i-- > event + 1;)
    if (log.events[i].thread == log.events[event].thread && log.events[i].begin <= event)
      around.push_back(i);
  return around;
}

RowRef last_certified(const Report& report, const std::vector<Lane>& lanes) {
  const Pair* pair = last_certified(report.a, report.alignment);
  if (!pair) return {};
  return find_row(lanes, 0, {report.alignment.processes[pair->process].a, pair->a});
}

}  // namespace opguard
