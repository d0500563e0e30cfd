// confirm/trials.h: the candidates of a proof, how each is forced, and what came of it.
//
// The judgement's candidates come first, then what running again has found: another candidate, or
// the operator that was measured. One of a site is one trial.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "align/pair/timeline.h"
#include "align/values/value_index.h"
#include "confirm/proof.h"

namespace opguard {

// A candidate and how to force it.
struct Trial {
  Pivot pivot;
  bool eligible = false;  // it read the same in both runs
  Experiment experiment;
  Confirmation found;
  bool tried = false;
  std::optional<Effect> alone = {};   // of a run with nothing else forced
  std::optional<bool> left_out = {};  // of a run with everything else as in run a: do they part?
};

class Trials {
 public:
  // All must stay.
  Trials(const Timeline& timeline, const ValueIndex& a, const ValueIndex& b)
      : timeline_(timeline), index_{&a, &b} {}
  void judge_step(uint32_t step) { judged_step_ = step; }

  // The trial of a candidate, a new one where its site has none. What was returned before is void.
  Trial& add(const Pivot& candidate);
  // The trial that a measured cause is. An operator of a region stands for the region, and an
  // operator around a candidate for the candidate. What is drawn stands for what moved the
  // generator, or drew from it in one run alone. What reads a race's memory, where nobody made
  // the bytes, stands for the race: which reader sees other bytes is chance. Else it is a new one.
  Trial& of(const Pivot& cause);
  // The candidate ran inside the operator: `opt.step()` around `exp_avg.lerp_(grad, b2)`.
  bool around(const Pivot& outer, const Pivot& candidate) const;
  // The next candidate that can be forced: it read the same in both runs.
  std::optional<size_t> next() const;
  // What was forced alone and changed nothing is left as it is, where both logs show something else
  // that begins by itself. It is proven harmless when all is healed without it.
  // False: all are asked.
  bool leave_out_harmless(Experiment& question, const ModelDifference& difference) const;
  // The operator that left the autograd graph in one run alone, or whose backward hands on another
  // number of gradients. Its values are equal and its gradients are not: whatever was measured in
  // the backward pass follows from it.
  const Pivot* graph_cut(const Verdict& verdict, const std::vector<size_t>& found) const;
  // Where a candidate stands among all events of both runs.
  Position position(const Pivot& pivot) const;

  bool empty() const { return all_.empty(); }
  size_t size() const { return all_.size(); }
  size_t index(const Trial& trial) const { return static_cast<size_t>(&trial - all_.data()); }
  Trial& operator[](size_t i) { return all_[i]; }
  const Trial& operator[](size_t i) const { return all_[i]; }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  bool same_site(const Pivot& x, const Pivot& y) const;
  bool of_race(const Pivot& race, const Pivot& cause) const;
  bool draws(int side, const EventRef& event) const;
  // One run alone has it: from there on the generator is at another place in each.
  bool drew_alone(const Pivot& pivot) const;

  const Timeline& timeline_;
  const ValueIndex* index_[2];
  uint32_t judged_step_ = kNone;
  std::vector<Trial> all_;
};

// "" of no event.
std::string boundary_of(const Run& run, const EventRef& event);

}  // namespace opguard
