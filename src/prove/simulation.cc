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
    for (;;) {
      bool progress = false;
      for (size_t r = 0; r < ranks_.size(); ++r) progress |= advance(r);
      while (meet_some()) progress = true;
      if (std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.done(); })) return;
      if (!progress) throw deadlock();
    }
  }

 private:
  bool advance(size_t r) {
    Rank& rank = ranks_[r];
    bool progress = false;
    while (!rank.done() && !waiting_[r]) {
      const Node& node = rank.node();
      if (kept_ != nullptr) kept_->arrive(rank);
      try {
        if (!meets(node)) {
          apply(rank);
        } else {
          Meeting m = meeting_of(node);
          if (m.group.empty()) throw Unprovable("a collective whose group is not known");
          if (m.kind == Meets::send) {
            send(rank, m);
          } else if (m.kind == Meets::receive) {
            if (!receive(rank, m)) return progress;
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

  void leave(Rank& rank) {
    if (kept_ != nullptr) kept_->leave(rank);
    rank.advance();
  }

  // Messages of two groups never meet, though two ranks and a tag may be in both.
  using Box = std::tuple<std::vector<uint32_t>, uint32_t, uint32_t, int64_t>;
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
  bool receive(Rank& rank, const Meeting& m) {
    auto& box = mail_[{m.group, other(m), rank.number(), m.tag}];
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
    if (kept_ != nullptr) kept_->meet({rank.number(), rank.next()}, box.front().by);
    box.erase(box.begin());
    return true;
  }

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
      stopped.waiting.push_back(statement_of(rank, rank.node()));
      if (stopped.waiting.size() > kToldOfADeadlock) continue;
      stopped.why += (stopped.waiting.size() > 1 ? "; rank " : " rank ") + std::to_string(r);
      if (waiting_[r]) {
        stopped.why += std::string(" waits in ") + name_of(waiting_[r]->kind) + " of ranks";
        for (uint32_t m : waiting_[r]->group) stopped.why += " " + std::to_string(m);
      } else {
        stopped.why +=
            " waits for a message of rank " + std::to_string(other(meeting_of(rank.node())));
      }
      stopped.why += " at " + rank.place();
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
