// align/judge/graph_cut.h: where a result takes part in backward in one run and not in the other.
//
// A backward node that only one run has is a consequence: `no_grad`, `.detach()` and their like
// keep every value and change every gradient behind them. From the node's forward operator we go
// back along what it used, while the operators' results are in the graph in one run alone:
//   aux = balance(h)          a: in the graph     b, under no_grad: not
//   (0.1 * aux).backward()    a's node of `*` leads to `*`, to `balance`, to `h.softmax(-1)` in it
// A logging statistic under no_grad beside it is no ancestor of the node, and is not met. What an
// operator read that wants no gradient does not lead on. The log tells it of every argument
// (kWantsGradient), since a tensor and its detached view lie on the same bytes. Where the node's
// forward is in the graph in both runs, the gradient was lost on its way back to it:
//   h = norm(x)     y = linear(h.detach())    b has no backward of `norm`; `detach` cuts
// Then those that read the forward's result are looked at. A node of both runs that hands on fewer
// gradients in one of them is a consequence too. What its forward was given is looked at. Where the
// other run's operator was given the result of one that this run has not (`h.detach()`), that one
// cuts.
#pragma once

#include "align/pair/timeline.h"
#include "align/values/value_index.h"

namespace opguard {

// What to name in place of the node: an operator of both runs, or of one alone (the other's
// process is -1). `found` false: nothing the node's forward used differs so.
struct GraphCut {
  EventRef refs[2];
  bool found = false;
};

// node: an event of kind node that only `side` has, or that sends on more gradients there.
GraphCut find_graph_cut(const Timeline& timeline, const ValueIndex& a, const ValueIndex& b,
                        int side, const EventRef& node);

}  // namespace opguard
