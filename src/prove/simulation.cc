// Rounds: each rank goes on as far as it can, then groups that are complete meet. A round without
// progress, with ranks that have not ended, is a deadlock. So ranks are never run in parallel, and
// each run is the same.
//
// A receive is posted when it is called and done when its message is there:
//
//   irecv(a); irecv(b); use(b)   b is wanted; a, before it in the same box, is done first
//   irecv(a); end                a is done at the rank's end, if its message has come
//
// The cost beside the operators: each round looks at all ranks, and each node at what is posted.
#include "prove/simulation.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "prove/collectives.h"
#include "prove/operators.h"

namespace opguard::proving {
namespace {

constexpr size_t kToldOfADeadlock = 4;  // ranks

// All ranks to their ends, together.
class Simulation {
 public:
  Simulation(Terms& terms, std::vector<Rank>& ranks, History* kept)
      : terms_(terms), ranks_(ranks), kept_(kept) {}

  void run() {
    waiting_.assign(ranks_.size(), std::nullopt);
    posted_.assign(ranks_.size(), {});
    for (;;) {
      bool progress = false;
      for (size_t r = 0; r < ranks_.size(); ++r) progress |= advance(r);
      while (meet_some()) progress = true;
      if (std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.done(); })) {
        // A message that came and was never looked at can still be of a wrong size.
        for (size_t r = 0; r < ranks_.size(); ++r) take_all(r);
        return;
      }
      if (!progress) throw deadlock();
    }
  }

 private:
  // True where the rank left at least one node, or came to a collective.
  bool advance(size_t r) {
    Rank& rank = ranks_[r];
    bool progress = false;
    while (!rank.done() && !waiting_[r]) {
      const Node& node = rank.node();
      try {
        if (!fill(r, [&](const Posted& p) { return touches(node, p); })) return progress;
        if (kept_ != nullptr) kept_->arrive(rank);
        if (!meets(node)) {
          apply(rank);
        } else {
          Meeting m = meeting_of(node);
          if (m.group.empty()) throw Unprovable("a collective whose group is not known");
          if (m.kind == Meets::send) {
            send(rank, m);
          } else if (m.kind == Meets::receive) {
            posted_[r].push_back({std::move(m), rank.next()});
            if (node.waits && !fill(r, [&](const Posted& p) { return p.node == rank.next(); })) {
              // It is posted again when the rank comes back to this node.
              posted_[r].pop_back();
              return progress;
            }
          } else {
            waiting_[r] = std::move(m);
            return true;
          }
        }
      } catch (const Refuted& e) {
        throw Stopped{true, e.what(), statement_of(rank, node), {}};
      } catch (const Unprovable& e) {
        throw Stopped{false, e.what(), statement_of(rank, node), {}};
      }
      leave(rank);
      progress = true;
    }
    return progress;
  }

  // At a rank's end: what it never read may have come all the same.
  void take_all(size_t r) {
    if (posted_[r].empty()) return;
    const Statement last = statement_of(ranks_[r], ranks_[r].trace().nodes[posted_[r][0].node]);
    try {
      fill(r, [](const Posted&) { return true; });
    } catch (const Refuted& e) {
      throw Stopped{true, e.what(), last, {}};
    } catch (const Unprovable& e) {
      throw Stopped{false, e.what(), last, {}};
    }
  }

  void leave(Rank& rank) {
    if (kept_ != nullptr) kept_->leave(rank);
    rank.advance();
  }

  // Messages of two groups never meet, though two ranks and a tag may be in both.
  using Box = std::tuple<std::vector<uint32_t>, uint32_t, uint32_t, int64_t>;
  // A message: what was sent, as it was then. What the sender writes behind it changes nothing.
  struct Letter {
    std::vector<Array> parts;
    std::vector<std::string> types;
    NodeAt by;
  };
  uint32_t other(const Meeting& m) const {
    return static_cast<size_t>(m.root) < m.group.size() ? m.group[static_cast<size_t>(m.root)]
                                                        : static_cast<uint32_t>(m.root);
  }
  void send(Rank& rank, const Meeting& m) {
    Letter sent{{}, {}, {rank.number(), rank.next()}};
    for (const Tensor& t : m.inputs) {
      sent.parts.push_back(rank.read(t));
      sent.types.push_back(t.dtype);
    }
    mail_[{m.group, rank.number(), other(m), m.tag}].push_back(std::move(sent));
  }
  // A receive that was called. irecv() is done when its memory is read, at the latest.
  struct Posted {
    Meeting meeting;
    uint32_t node;
  };
  // Whether a node reads or writes memory that the receive is to fill. A view does neither.
  static bool touches(const Node& node, const Posted& posted) {
    if (node.view) return false;
    const auto is_there = [&](uint32_t storage) {
      return std::any_of(posted.meeting.outputs.begin(), posted.meeting.outputs.end(),
                         [&](const Tensor& t) { return t.storage == storage; });
    };
    const auto any = [&](const nlohmann::json& argument) {
      const auto storages = storages_in(argument);
      return std::any_of(storages.begin(), storages.end(), is_there);
    };
    return std::any_of(node.arguments.begin(), node.arguments.end(), any) ||
           std::any_of(node.keywords.begin(), node.keywords.end(), any);
  }
  // Does the receives that are wanted, and those before the last of them. Messages of one sender
  // and tag come in the order in which their receives were called. False where one that is wanted
  // is not there yet.
  template <typename Wanted>
  bool fill(size_t r, Wanted wanted) {
    std::vector<Posted>& posted = posted_[r];
    std::optional<size_t> last;
    for (size_t i = 0; i < posted.size(); ++i)
      if (wanted(posted[i])) last = i;
    if (!last) return true;
    bool all = true;
    std::vector<Posted> left;
    for (size_t i = 0; i < posted.size(); ++i) {
      const bool behind_another = std::any_of(left.begin(), left.end(), [&](const Posted& p) {
        return box_of(ranks_[r], p.meeting) == box_of(ranks_[r], posted[i].meeting);
      });
      if (i <= *last && !behind_another && receive(ranks_[r], posted[i])) continue;
      all = all && !wanted(posted[i]);
      left.push_back(posted[i]);
    }
    posted = std::move(left);
    return all;
  }
  Box box_of(const Rank& rank, const Meeting& m) const {
    return {m.group, other(m), rank.number(), m.tag};
  }
  // False where no message is there. Another type or size is refuted: whatever the numbers are,
  // that is no message.
  bool receive(Rank& rank, const Posted& posted) {
    const Meeting& m = posted.meeting;
    auto& box = mail_[box_of(rank, m)];
    if (box.empty()) return false;
    for (size_t i = 0; i < m.outputs.size(); ++i) {
      const Array& got = box.front().parts.at(i);
      if (const std::string& type = box.front().types.at(i); type != m.outputs[i].dtype)
        throw Refuted("rank " + std::to_string(rank.number()) + " receives " + m.outputs[i].dtype +
                      ", and rank " + std::to_string(other(m)) + " sends " + type);
      if (static_cast<size_t>(size_of(m.outputs[i].shape)) != got.at.size())
        throw Refuted("rank " + std::to_string(rank.number()) + " receives " +
                      std::to_string(size_of(m.outputs[i].shape)) + " elements, and rank " +
                      std::to_string(other(m)) + " sends " + std::to_string(got.at.size()));
      rank.write(m.outputs[i], reshaped(got, m.outputs[i].shape));
    }
    if (kept_ != nullptr) kept_->receive(rank, posted.node, box.front().by);
    box.erase(box.begin());
    return true;
  }

  // The first group of which all members wait for just this group. Its first member looks for the
  // others, so that each group is looked at once.
  bool meet_some() {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (!waiting_[r] || waiting_[r]->group.empty() || waiting_[r]->group[0] != r) continue;
      const std::vector<uint32_t> group = waiting_[r]->group;
      if (!std::all_of(group.begin(), group.end(), [&](uint32_t m) {
            return m < ranks_.size() && waiting_[m] && waiting_[m]->group == group;
          }))
        continue;
      std::vector<Rank*> members;
      std::vector<Meeting> parts;
      for (uint32_t m : group) {
        members.push_back(&ranks_[m]);
        parts.push_back(*waiting_[m]);
      }
      for (size_t i = 1; i < parts.size(); ++i)
        if (parts[i].kind != parts[0].kind)
          throw Stopped{true,
                        "rank " + std::to_string(group[0]) + " calls " + name_of(parts[0].kind) +
                            " at " + members[0]->place() + ", rank " + std::to_string(group[i]) +
                            " " + name_of(parts[i].kind) + " at " + members[i]->place(),
                        statement_of(*members[i], members[i]->node()),
                        {}};
      try {
        meet(terms_, members, parts);
      } catch (const Refuted& e) {
        throw Stopped{true, e.what(), statement_of(*members[0], members[0]->node()), {}};
      } catch (const Unprovable& e) {
        throw Stopped{false, e.what(), statement_of(*members[0], members[0]->node()), {}};
      }
      for (uint32_t m : group)
        for (uint32_t with : group)
          if (kept_ != nullptr && with != m)
            kept_->meet({m, ranks_[m].next()}, {with, ranks_[with].next()});
      for (uint32_t m : group) {
        leave(ranks_[m]);
        waiting_[m].reset();
      }
      return true;
    }
    return false;
  }

  // Each rank by what it waits for; the text has the first four.
  Stopped deadlock() const {
    Stopped stopped{true, "a deadlock:", {}, {}};
    std::string ended;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const Rank& rank = ranks_[r];
      if (rank.done()) {
        ended += (ended.empty() ? "" : ", ") + std::to_string(r);
        continue;
      }
      // A receive whose memory is asked for stands where it was called.
      const Node* at = &rank.node();
      for (const Posted& p : posted_[r])
        if (touches(*at, p)) {
          at = &rank.trace().nodes[p.node];
          break;
        }
      stopped.waiting.push_back(statement_of(rank, *at));
      if (stopped.waiting.size() > kToldOfADeadlock) continue;
      stopped.why += (stopped.waiting.size() > 1 ? "; rank " : " rank ") + std::to_string(r);
      if (waiting_[r]) {
        stopped.why += std::string(" waits in ") + name_of(waiting_[r]->kind) + " of ranks";
        for (uint32_t m : waiting_[r]->group) stopped.why += " " + std::to_string(m);
      } else {
        stopped.why += " waits for a message of rank " + std::to_string(other(meeting_of(*at)));
      }
      stopped.why += " at " + rank.place_of(*at);
    }
    if (!stopped.waiting.empty()) stopped.at = stopped.waiting[0];
    if (!ended.empty()) stopped.why += "; ended: " + ended;
    return stopped;
  }

  Terms& terms_;
  std::vector<Rank>& ranks_;
  History* kept_;
  std::vector<std::optional<Meeting>> waiting_;
  std::map<Box, std::vector<Letter>> mail_;
  std::vector<std::vector<Posted>> posted_;  // by rank: receives that are not done
};

}  // namespace

Statement statement_of(const Trace& trace, const std::string& op, uint32_t at, bool backward) {
  Statement s;
  s.rank = trace.rank;
  s.op = op;
  s.backward = backward;
  const auto& stack = trace.stacks[at];
  if (!stack.empty()) {
    s.file = stack[0].file;
    s.line = stack[0].line;
    s.function = stack[0].function;
    s.callers.assign(stack.begin() + 1, stack.end());
  }
  return s;
}

Statement statement_of(const Trace& trace, const Node& node) {
  return statement_of(trace, node.op, node.stack, node.backward);
}

std::string places_of(const std::vector<Statement>& statements) {
  std::string text;
  for (size_t i = 0; i < statements.size() && i < kToldOfADeadlock; ++i) {
    const Statement& s = statements[i];
    text += (i > 0 ? ", rank " : "rank ") + std::to_string(s.rank) + " at " +
            s.file.substr(s.file.rfind('/') + 1) + ":" + std::to_string(s.line);
  }
  return text;
}

std::optional<Stopped> run_together(Terms& terms, std::vector<Rank>& ranks, History* kept) {
  try {
    Simulation(terms, ranks, kept).run();
  } catch (const Stopped& stopped) {
    return stopped;
  }
  return {};
}

}  // namespace opguard::proving
