#include "prove/history.h"

#include <algorithm>

namespace opguard::proving {
namespace {

// Each tensor once a node. What is no tensor has no type; complex ones cannot be looked at.
void keep(Rank& rank, const Tensor& tensor, std::vector<Held>& in) {
  const bool complex = tensor.dtype.starts_with("complex");
  const auto is_it = [&](const Held& h) { return h.tensor == tensor; };
  if (tensor.dtype.empty() || complex || std::any_of(in.begin(), in.end(), is_it)) return;
  in.push_back({tensor, rank.look(tensor)});
}

}  // namespace

History::History(const std::vector<Rank>& ranks) {
  for (const Rank& rank : ranks) {
    moments_.emplace_back(rank.trace().nodes.size());
    traces_.push_back(&rank.trace());
  }
}

// A rank that waits for a message arrives at one node several times: the last time counts.
void History::arrive(Rank& rank) {
  const Node& node = rank.node();
  Moment& moment = of(NodeAt{rank.number(), rank.next()});
  moment.reads.clear();
  const auto read = [&](const nlohmann::json& argument) {
    for (const Tensor& tensor : tensors_in(argument)) keep(rank, tensor, moment.reads);
  };
  for (const auto& argument : node.arguments) read(argument);
  for (const auto& argument : node.keywords) read(argument);
}

void History::leave(Rank& rank) {
  const Node& node = rank.node();
  Moment& moment = of(NodeAt{rank.number(), rank.next()});
  moment.order = ++order_;
  for (const Tensor& tensor : node.writes) keep(rank, tensor, moment.writes);
  for (const Tensor& tensor : node.results) keep(rank, tensor, moment.writes);
}

// irecv() is left before its message has come. What its memory held then is replaced.
void History::receive(Rank& rank, uint32_t node, NodeAt sender) {
  Moment& moment = of({rank.number(), node});
  moment.met.push_back(sender);
  moment.writes.clear();
  for (const Tensor& tensor : rank.trace().nodes[node].writes) keep(rank, tensor, moment.writes);
}

// Backwards over the rank's nodes: linear, and asked only of a plan that is refuted.
int64_t History::writer(NodeAt before, const Tensor& tensor) const {
  const auto& nodes = traces_[before.rank]->nodes;
  for (int64_t i = int64_t{before.node} - 1; i >= 0; --i)
    if (const Node& node = nodes[static_cast<size_t>(i)]; !node.view)
      for (const Held& held : of({before.rank, static_cast<uint32_t>(i)}).writes)
        if (held.tensor.storage == tensor.storage) return i;
  return -1;
}

int64_t History::giver(NodeAt before, const Tensor& tensor) const {
  const auto& nodes = traces_[before.rank]->nodes;
  for (int64_t i = int64_t{before.node} - 1; i >= 0; --i)
    for (const Tensor& result : nodes[static_cast<size_t>(i)].results)
      if (result == tensor) return i;
  return -1;
}

int64_t History::first_giver(NodeAt before, const Tensor& tensor) const {
  const auto& nodes = traces_[before.rank]->nodes;
  for (uint32_t i = 0; i < before.node; ++i)
    for (const Tensor& result : nodes[i].results)
      if (result == tensor) return i;
  return -1;
}

}  // namespace opguard::proving
