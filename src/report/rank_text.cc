// Ranks of which the same sentence is true share a line, the origins first.
//
//   rank 1: began here: model/attention.py:40  F.dropout, forward, step 0
//   ranks 0, 2-7: received from rank 1 by train.py:31  dist.all_reduce, group 0-7, number 16, ...
//
// Two ranks in a row are listed, three or more are a range: "0, 1", "0-2".
//
// Counterexample: to group by role. Ranks of two collectives received from others, at other places.
//
// The cost: each rank looks its sentence up among those of its role.
#include "report/rank_text.h"

#include <algorithm>

#include "align/judge/pivot_view.h"
#include "support/text.h"

namespace opguard {

const char* role_name(RankRole role) {
  switch (role) {
    case RankRole::equal:
      return "equal";
    case RankRole::origin:
      return "origin";
    case RankRole::received:
      return "received";
    case RankRole::unknown:
      return "unknown";
  }
  return "";
}

std::string ranks_text(const std::vector<int32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (i > 0) text += ", ";
    text += std::to_string(ranks[i]);
    if (last > i) text += (last == i + 1 ? ", " : "-") + std::to_string(ranks[last]);
    i = last;
  }
  return text;
}

std::string share_text(const Report& report, const RankShare& share) {
  const EventView b = view(report.b, share.b), event = b ? b : view(report.a, share.a);
  if (share.role == RankRole::equal) return "equal in every model value";
  if (!event)
    return "differs; neither a recorded operator nor a collective of its log says since when";
  std::string where = shown(place(event)) + "  " + shown(event.operator_name);
  std::string when = std::string(", ") + phase_name(event.event->phase) + ", step " +
                     std::to_string(event.event->step);
  if (share.role == RankRole::origin) return "began here: " + where + when;
  std::string text = "received from " + ranks_text(share.from);
  // Gradients that DDP averages below Python leave no event of their own: the step that reads them
  // is named.
  if (!(event.event->flags & kCollective))
    return text + " in gradients averaged below Python, before " + where + when;
  text += " by " + where;
  if (event.event->group != kNone) text += ", group " + shown(event.log->text(event.event->group));
  if (event.event->sequence > 0) text += ", number " + std::to_string(event.event->sequence);
  return text + when;
}

std::vector<RankLine> rank_lines(const Report& report) {
  std::vector<RankLine> lines;
  for (RankRole role : {RankRole::origin, RankRole::received, RankRole::unknown, RankRole::equal}) {
    const size_t begin = lines.size();
    for (const RankShare& share : report.verdict.ranks) {
      if (share.role != role) continue;
      const std::string text = share_text(report, share);
      auto same = std::find_if(lines.begin() + begin, lines.end(),
                               [&](const RankLine& line) { return line.text == text; });
      if (same == lines.end()) same = lines.insert(same, {{}, text});
      same->ranks.push_back(share.rank);
    }
  }
  return lines;
}

}  // namespace opguard
