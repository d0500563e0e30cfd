// Messages are only counted. The third send of a box meets its third receive. It may go on once
// three receives have been called, and that receive once three sends have.
//
//   box (group, from 0, to 1, tag 0)     sends 3, receives 2: the third send waits
#include "prove/rendezvous.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "prove/collectives.h"

namespace opguard::proving {
namespace {

class Rendezvous {
 public:
  explicit Rendezvous(const std::vector<Trace>& ranks)
      : ranks_(ranks), at_(ranks.size()), now_(ranks.size()) {}

  std::vector<Statement> run() {
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t r = 0; r < ranks_.size(); ++r) progress |= advance(r);
      for (size_t r = 0; r < ranks_.size(); ++r) progress |= meet_at(r);
    }
    std::vector<Statement> stuck;
    for (size_t r = 0; r < ranks_.size(); ++r)
      if (now_[r]) stuck.push_back(statement_of(ranks_[r], ranks_[r].nodes[at_[r]]));
    return stuck;
  }

 private:
  // Group, sender, receiver, tag: messages of one box meet in order.
  using Box = std::tuple<std::vector<uint32_t>, uint32_t, uint32_t, int64_t>;
  struct Posted {
    size_t sends = 0, receives = 0;
  };
  // What a rank is at: a collective, or a message and its place in its box.
  struct Waiting {
    Meeting meeting;
    Box box;
    size_t place = 0;
  };

  static bool is_message(const Meeting& m) {
    return m.kind == Meets::send || m.kind == Meets::receive;
  }

  // Up to its next collective or its next message that waits.
  bool advance(size_t r) {
    bool progress = false;
    for (;;) {
      if (now_[r]) {
        const Waiting& w = *now_[r];
        if (!is_message(w.meeting)) return progress;
        const Posted& posted = boxes_[w.box];
        const size_t others = w.meeting.kind == Meets::send ? posted.receives : posted.sends;
        if (others <= w.place) return progress;
        leave(r);
        progress = true;
      }
      const std::vector<Node>& nodes = ranks_[r].nodes;
      while (at_[r] < nodes.size() && !meets(nodes[at_[r]])) ++at_[r];
      if (at_[r] == nodes.size()) return progress;
      enter(r, nodes[at_[r]]);
      progress = true;
    }
  }

  // Posts a message, and waits there if it does. isend() and irecv() are posted, and the rank goes
  // on.
  void enter(size_t r, const Node& node) {
    Waiting w{meeting_of(node), {}, 0};
    if (is_message(w.meeting)) {
      const auto place = static_cast<size_t>(w.meeting.root);
      const uint32_t own = ranks_[r].rank;
      const uint32_t other =
          place < w.meeting.group.size() ? w.meeting.group[place] : static_cast<uint32_t>(place);
      const bool sends = w.meeting.kind == Meets::send;
      w.box = {w.meeting.group, sends ? own : other, sends ? other : own, w.meeting.tag};
      Posted& posted = boxes_[w.box];
      w.place = sends ? posted.sends++ : posted.receives++;
      if (!node.waits) {
        ++at_[r];
        return;
      }
    }
    now_[r] = std::move(w);
  }

  void leave(size_t r) {
    now_[r].reset();
    ++at_[r];
  }

  // A collective, if all of its group wait for one of just this group. Kinds are not compared: the
  // proof has done so.
  bool meet_at(size_t r) {
    if (!now_[r] || is_message(now_[r]->meeting)) return false;
    const std::vector<uint32_t> group = now_[r]->meeting.group;
    const bool all = std::all_of(group.begin(), group.end(), [&](uint32_t m) {
      return m < now_.size() && now_[m] && !is_message(now_[m]->meeting) &&
             now_[m]->meeting.group == group;
    });
    if (!all) return false;
    for (const uint32_t m : group) leave(m);
    return true;
  }

  const std::vector<Trace>& ranks_;
  std::vector<size_t> at_;  // nodes
  std::vector<std::optional<Waiting>> now_;
  std::map<Box, Posted> boxes_;
};

}  // namespace

std::vector<Statement> stuck_in_sends(const std::vector<Trace>& ranks) {
  return Rendezvous(ranks).run();
}

}  // namespace opguard::proving
