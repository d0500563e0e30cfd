// Nodes are labelled by their kind: the operator, the user's lines that led to it, the types and
// numbers of dimensions of its tensors. No size is in a kind, and no number among the arguments. So
// an operator in a loop over layers has one label in all of them.
//
//   aten.mm.default tp.py:40 tp.py:12[T2float32,T2float32,],2float32;
//
// Reduced and full traces share one table of kinds, which makes their forms comparable.
#include "prove/full_dims.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "prove/proportions.h"
#include "prove/repeats.h"
#include "prove/wiring.h"

namespace opguard::proving {
namespace {

using nlohmann::json;

// What a node is but for its numbers: its operator, its lines, its arguments' kinds.
void append_kind(const json& argument, std::string& text) {
  if (is_tensor(argument)) {
    text += "T" + std::to_string(argument["t"][2].size()) + argument["t"][4].get<std::string>();
  } else if (argument.is_array()) {
    // A list of tensors may be one of all layers.
    text += "[";
    const bool tensors = !argument.empty() && is_tensor(argument[0]);
    for (const json& entry : argument) {
      append_kind(entry, text);
      if (tensors) break;
    }
    text += "]";
  } else if (argument.is_number()) {
    text += "n";
  } else if (argument.is_object()) {
    text += argument.contains("group") ? "g" : argument.dump();
  } else {
    text += argument.dump();
  }
  text += ",";
}

std::string kind_of(const Trace& trace, const Node& node) {
  std::string text = node.op;
  for (const Frame& frame : trace.stacks[node.stack])
    text += " " + frame.file + ":" + std::to_string(frame.line);
  append_kind(node.arguments, text);
  for (const auto& [key, value] : node.keywords.items()) {
    text += key;
    append_kind(value, text);
  }
  // As many parts as ranks, where something is split: one after another alike is one.
  std::string before;
  for (const Tensor& t : node.results) {
    const std::string kind = std::to_string(t.shape.size()) + t.dtype;
    if (kind != before) text += kind + ";";
    before = kind;
  }
  return text;
}

using Kinds = std::unordered_map<std::string, uint32_t>;

// The trace folded by kinds; new ones are added to the table.
Folded fold(const Trace& trace, Kinds& kinds) {
  std::vector<uint32_t> labels;
  for (const Node& node : trace.nodes)
    labels.push_back(
        kinds.try_emplace(kind_of(trace, node), static_cast<uint32_t>(kinds.size())).first->second);
  return folded(labels);
}

// The first leaf at which the two are different operators, in words. Where both name the same
// operator and line, arguments or repetitions differ.
std::string other_operators(const Trace& a, const Folded& fa, const Trace& b, const Folded& fb) {
  const auto node_at = [](const Trace& trace, const Folded& f, size_t leaf) -> const Node* {
    for (size_t i = 0; i < f.nodes.size(); ++i)
      if (f.nodes[i].leaf == leaf) return &trace.nodes[i];
    return nullptr;
  };
  size_t leaf = 0;
  while (leaf < fa.labels.size() && leaf < fb.labels.size() && fa.labels[leaf] == fb.labels[leaf])
    ++leaf;
  const Node *x = node_at(a, fa, leaf), *y = node_at(b, fb, leaf);
  const auto told = [](const Trace& trace, const Node* node) {
    return node == nullptr ? std::string("nothing") : node->op + " at " + line_text(trace, *node);
  };
  std::string text = "at full dims it runs " + told(b, y) + ", at reduced ones " + told(a, x);
  if (told(a, x) == told(b, y)) text += ", with other arguments or another number of repetitions";
  return text +
         " (a block that repeats at full dims has to repeat at reduced ones: three times will do)";
}

// One side against its twin; "" where they are the same program.
std::string compared(const Trace& small, const Trace& full, const Proportions& proportions,
                     Kinds& kinds, std::vector<FullComparison::Repeated>* repeated) {
  const Folded a = fold(small, kinds), b = fold(full, kinds);
  if (a.form != b.form) return other_operators(small, a, full, b);
  if (repeated != nullptr)
    for (size_t i = 0; i < a.counts.size(); ++i)
      if (a.counts[i] != b.counts[i]) repeated->push_back({a.counts[i], b.counts[i], a.lengths[i]});
  const Wiring wired_small(small, a), wired_full(full, b);
  if (std::string difference = wired_small.difference(wired_full); !difference.empty())
    return difference;
  return proportions.difference(small, a, full, b);
}

}  // namespace

FullDims read_full_dims(const std::string& folder) {
  const std::string path = folder + "/plan.json";
  const json file = read_json(path);
  FullDims found;
  std::vector<uint32_t> ranks;
  try {
    found.world = file.at("world").get<uint32_t>();
    found.dims = file.at("dims").get<std::map<std::string, int64_t>>();
    ranks = file.at("ranks").get<std::vector<uint32_t>>();
    found.twins = file.at("twins").get<std::vector<uint32_t>>();
    if (ranks.size() != found.twins.size()) throw std::runtime_error("ranks without twins");
  } catch (const std::exception& e) {
    throw std::runtime_error(path + ": " + e.what());
  }
  found.logical = read_trace(folder + "/logical.json");
  for (uint32_t rank : ranks)
    found.ranks.push_back(read_trace(folder + "/rank-" + std::to_string(rank) + ".json"));
  return found;
}

FullComparison compare_full_dims(const Captured& reduced, const FullDims& full) {
  FullComparison result;
  result.world = full.world;
  result.looked_at = static_cast<uint32_t>(full.ranks.size());
  result.dims = full.dims;
  result.operators = full.logical.nodes.size();
  for (const Trace& trace : full.ranks) result.operators += trace.nodes.size();
  Kinds kinds;
  const Proportions model(reduced.dims, full.dims, 0, 0);
  result.difference = compared(reduced.logical, full.logical, model, kinds, &result.repeated);
  if (!result.difference.empty()) {
    result.difference = "the model: " + result.difference;
    return result;
  }
  std::set<std::string> given;
  for (size_t i = 0; i < full.ranks.size(); ++i) {
    const Trace& rank = full.ranks[i];
    for (const auto& [name, tensor] : rank.outputs) given.insert(name);
    const uint32_t twin = full.twins[i];
    if (twin >= reduced.ranks.size()) {
      result.difference = "rank " + std::to_string(rank.rank) + " has no twin at reduced dims";
      return result;
    }
    const Proportions proportions(reduced.dims, full.dims, twin, rank.rank);
    result.difference = compared(reduced.ranks[twin], rank, proportions, kinds, nullptr);
    if (!result.difference.empty()) {
      result.difference = "rank " + std::to_string(rank.rank) + ", beside rank " +
                          std::to_string(twin) + " of the reduced plan: " + result.difference;
      return result;
    }
  }
  for (const auto& [name, tensor] : full.logical.outputs)
    if (!given.contains(name)) {
      result.difference = "no rank that was looked at has " + name;
      return result;
    }
  return result;
}

}  // namespace opguard::proving
