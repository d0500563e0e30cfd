// tests/align/judge/judged.h: runs written by hand, and the verdict on them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "align/builder.h"
#include "align/judge/verdict.h"
#include "align/rules/hidden.h"

namespace opguard::test {

inline S loss_of(uint64_t value) { return {SlotKind::in, value, "root0", {4, 8}, kModelValue}; }
inline S parameter(uint64_t value) { return {SlotKind::out, value, "param0", {4, 8}, kModelValue}; }

inline E op(std::string boundary, std::vector<S> slots, std::string scalars = {}) {
  return {
      .boundary = std::move(boundary), .slots = std::move(slots), .scalars = std::move(scalars)};
}
inline E loss(uint64_t value, uint32_t step = 0) {
  return {.boundary = "train.backward:l",
          .slots = {loss_of(value)},
          .step = step,
          .kind = EventKind::loss};
}
inline E optimizer(std::vector<S> slots, uint32_t step = 0) {
  return {.boundary = "train.step:o",
          .slots = std::move(slots),
          .step = step,
          .phase = Phase::optimizer,
          .kind = EventKind::optimizer};
}

// A backward node of the operator that was recorded as event `forward`.
inline LogBuilder& add_node(LogBuilder& log, const std::string& boundary, uint32_t forward,
                            std::vector<S> slots) {
  log.add({.boundary = boundary,
           .slots = std::move(slots),
           .phase = Phase::backward,
           .kind = EventKind::node,
           .node = "Backward0"});
  log.log().events.edit().back().forward = forward;
  return log;
}

struct Judged {
  Run a, b;
  Verdict verdict;
  std::string boundary(const EventRef& ref, const Run& run) const {
    if (ref.process < 0) return "";
    const ProcessLog& log = run.processes[ref.process];
    return log.text(log.events[ref.event].boundary);
  }
  std::string pivot_a(size_t i = 0) const { return boundary(verdict.candidates.at(i).a, a); }
  std::string pivot_b(size_t i = 0) const { return boundary(verdict.candidates.at(i).b, b); }
  PivotKind kind() const { return verdict.candidates.at(0).kind; }
};

// Of one log a rank, without the heuristics that are `off`.
inline Judged judged(std::vector<LogBuilder> a, std::vector<LogBuilder> b,
                     const Heuristics& off = {}) {
  Judged j;
  std::vector<ProcessLog> logs_a, logs_b;
  for (LogBuilder& builder : a) logs_a.push_back(builder.log());
  for (LogBuilder& builder : b) logs_b.push_back(builder.log());
  j.a = run_of(logs_a, "a");
  j.b = run_of(logs_b, "b");
  const Alignment alignment = align_runs(j.a, j.b);
  j.verdict = judge(j.a, j.b, alignment, HiddenRecords({}, j.a, j.b), off);
  return j;
}

}  // namespace opguard::test
