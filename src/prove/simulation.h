// prove/simulation.h: all ranks of a plan together, from their first operator to their last.
//
// A rank runs on until a collective, and waits there. Where all of its group have come, it is done
// for all of them. recv() waits for its message. irecv() does where what it brings is read, or
// written. A send waits for nobody.
//
//   rank 0   mm, all_reduce [0, 1], relu
//   rank 1   mm, mm, all_reduce [0, 1], relu     rank 0 waits for the second mm; then both go on
//   rank 1   mm, all_gather [0, 1]               refuted: two kinds of collective in one group
//   rank 1   mm                                  refuted: rank 0 waits for ever
//
// The order in which ranks take turns changes no value. Each has a memory of its own, and messages
// of one sender, receiver, group and tag keep their order.
//
// Counterexample: races between streams are not seen. A collective is done when it is called, and
// wait() has no meaning of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prove/history.h"
#include "prove/rank.h"

namespace opguard::proving {

// A statement of the user's, with the operator that it ran. line is 0 where no line of the user's
// is known.
struct Statement {
  uint32_t rank = 0;
  std::string op, file, function;
  int64_t line = 0;
  bool backward = false;
  std::vector<Frame> callers = {};  // the user's lines that called it, innermost first
};
// at: its place in the trace's stacks.
Statement statement_of(const Trace& trace, const std::string& op, uint32_t at, bool backward);
Statement statement_of(const Trace& trace, const Node& node);
inline Statement statement_of(const Rank& rank, const Node& node) {
  return statement_of(rank.trace(), node);
}

// "rank 0 at pp.py:42, rank 1 at pp.py:46", of the first four.
std::string places_of(const std::vector<Statement>& statements);

// Why the ranks did not come to their ends. It is thrown as well, from within a run.
struct Stopped {
  bool refuted = false;  // else it is not known whether they would
  std::string why;
  std::optional<Statement> at;
  std::vector<Statement> waiting;  // of a deadlock: where each rank that has not ended waits
};

// Runs them; nothing where all have come to their ends. kept: where the run is written down, or
// nullptr. Rank r stands at place r, since groups name ranks by number.
std::optional<Stopped> run_together(Terms& terms, std::vector<Rank>& ranks,
                                    History* kept = nullptr);

}  // namespace opguard::proving
