// prove/simulation.h: all ranks of a plan together, from their first operator to their last.
//
// A rank runs on until a collective, and waits there. Where all of its group have come, it is done
// for all of them. recv() waits for its message. irecv() does where what it brings is read, or
// written. A send waits for nobody.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prove/history.h"
#include "prove/rank.h"

namespace opguard::proving {

// A statement of the user's, with the operator that it ran.
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

// Why the ranks did not come to their ends.
struct Stopped {
  bool refuted = false;  // else it is not known whether they would
  std::string why;
  std::optional<Statement> at;
  std::vector<Statement> waiting;  // of a deadlock: where each rank that has not ended waits
};

// Runs them; nothing where all have come to their ends. kept: where the run is written down, or
// nullptr.
std::optional<Stopped> run_together(Terms& terms, std::vector<Rank>& ranks,
                                    History* kept = nullptr);

}  // namespace opguard::proving
