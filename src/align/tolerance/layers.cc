// Each rank's layers are held against the reference's of the same prefix, by the mean distance of
// their parameters.
//
//   rank 1   layers.0      to layers.0: 0.9    to layers.2: 1e-9    it is layer 2
//   rank 0   layers.1      to layers.1: 0      no other one is tried
//
// Depth by depth: names of depth 1 ("layers.0.experts.3") are told with the layers renamed already.
//
// Counterexample: a rank whose weights are nobody's. It keeps its own number, so the weights are
// found to differ and not the layer to be missing.
#include "align/tolerance/layers.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "align/tolerance/placement.h"
#include "align/tolerance/tensors.h"

namespace opguard {
namespace {

// A distance above which parameters have nothing in common counts as this.
constexpr double kFar = 1;
// Parameters of one layer at most this far apart, on the average, are the same.
constexpr double kSame = 1e-2;
// In a name: a chunk's, a layer's, an expert's.
constexpr uint32_t kMostNumbers = 3;

struct Parameter {
  std::string_view rest;  // of its name, behind the number
  SlotRef at;
};
using LayerParameters = std::map<std::string, std::map<uint32_t, std::vector<Parameter>>>;

// Of the process's first `<parameters>`, by prefix and number. `renamed`: the names as they are
// known so far.
template <typename Rename>
LayerParameters parameters_of(const Run& run, int32_t process, uint32_t depth, Texts& texts,
                              Rename renamed) {
  LayerParameters found;
  const ProcessLog& log = run.processes[static_cast<size_t>(process)];
  for (uint64_t i = 0; i < log.sketches.size(); ++i) {
    const auto index = static_cast<uint32_t>(log.sketches.event(i));
    if (log.events.kind(index) != EventKind::state) continue;
    const Event event = log.events[index];
    if (log.text(event.boundary) != "<parameters>") continue;
    for (const SlotCode& slot : log.sketches.code_of_event(index).slots) {
      std::string_view name = log.text(log.slots[event.first_slot + slot.slot].name);
      name.remove_prefix(kind_of_slot(name).size());
      LayerName layer;
      const std::string& known = texts.text(texts.number(renamed(name)));
      if (split_layer(known, layer, depth))
        found[std::string(layer.prefix)][layer.number].push_back(
            {layer.rest, {{process, index}, event.first_slot + slot.slot}});
    }
    return found;
  }
  return found;
}

// The mean distance of the parameters of the same names; kFar for one that has no partner.
double apart(SketchReader& a, const std::vector<Parameter>& whole, SketchReader& b,
             const std::vector<Parameter>& held) {
  double sum = 0;
  for (const Parameter& mine : held) {
    const auto other = std::find_if(whole.begin(), whole.end(),
                                    [&](const Parameter& p) { return p.rest == mine.rest; });
    const Sketch* own = b.own(mine.at);
    if (other == whole.end() || own == nullptr) {
      sum += kFar;
      continue;
    }
    const RankValue rank{0, b.meta(mine.at).shape, own->sums};
    const WholeValue value{a.meta(other->at).shape, a.sets(other->at, {rank.shape})};
    sum += value.sets.empty() ? kFar : std::min(kFar, nearest_piece(value, rank));
  }
  return held.empty() ? kFar : sum / static_cast<double>(held.size());
}

}  // namespace

bool split_layer(std::string_view name, LayerName& layer, uint32_t depth) {
  for (size_t at = 0; at < name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    const std::string_view word = name.substr(at, end - at);
    if (at > 0 && !word.empty() && std::isdigit(static_cast<unsigned char>(word.front()))) {
      const auto [last, error] =
          std::from_chars(word.data(), word.data() + word.size(), layer.number);
      if (error == std::errc() && last == word.data() + word.size() && depth-- == 0) {
        layer.prefix = name.substr(0, at - 1);
        layer.rest = name.substr(end);
        return true;
      }
    }
    at = end + 1;
  }
  return false;
}

std::string without_numbers(const std::string& module) {
  std::string text;
  for (const char c : module) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit)
      text += c;
    else if (text.empty() || text.back() != '#')
      text += '#';
  }
  return text;
}

Layers::Layers(const Run& reference, const Run& candidate) {
  for (uint32_t depth = 0; depth < kMostNumbers; ++depth) tell(reference, candidate, depth);
}

void Layers::tell(const Run& reference, const Run& candidate, uint32_t depth) {
  Texts texts;
  LayerParameters whole;
  for (size_t i = 0; i < reference.processes.size() && whole.empty(); ++i)
    whole = parameters_of(reference, static_cast<int32_t>(i), depth, texts,
                          [](std::string_view name) { return name; });
  SketchReader a(reference), b(candidate);
  std::map<std::string, std::set<uint32_t>> covered;
  bool told = false;
  for (size_t process = 0; process < candidate.processes.size(); ++process) {
    const auto number = static_cast<int32_t>(process);
    const LayerParameters held =
        parameters_of(candidate, number, depth, texts,
                      [&](std::string_view name) { return global_name(number, name); });
    for (const auto& [prefix, layers] : held) {
      const auto known = whole.find(prefix);
      if (known == whole.end()) continue;
      for (const auto& [local, parameters] : layers) {
        told = true;
        const auto own = known->second.find(local);
        uint32_t global = local;
        const double same =
            own == known->second.end() ? kFar : apart(a, own->second, b, parameters);
        double nearest = same;
        if (same > kSame)
          for (const auto& [other, theirs] : known->second)
            if (const double error = apart(a, theirs, b, parameters); error < nearest) {
              nearest = error;
              global = other;
            }
        // Weights that are nobody's stay where they are.
        if (nearest > kSame && own != known->second.end()) global = local;
        covered[prefix].insert(global);
        places_.push_back(
            {number, candidate.processes[process].rank, prefix, local, global, depth});
        if (global != local) renamed_[{number, prefix}][local] = global;
      }
    }
  }
  if (!told) return;
  for (const auto& [prefix, layers] : whole)
    for (const auto& [layer, parameters] : layers)
      if (covered.contains(prefix) && !covered[prefix].contains(layer))
        none_.emplace_back(prefix, layer);
}

// Outer numbers are replaced first: how inner ones are renamed is known by the global prefix.
std::string Layers::global_name(int32_t process, std::string_view name) const {
  std::string known(name);
  if (renamed_.empty()) return known;
  const size_t kind = kind_of_slot(name).size();
  LayerName layer;
  for (uint32_t depth = 0; split_layer(std::string_view(known).substr(kind), layer, depth);
       ++depth) {
    const auto renamed = renamed_.find({process, std::string(layer.prefix)});
    if (renamed == renamed_.end()) continue;
    const auto global = renamed->second.find(layer.number);
    if (global == renamed->second.end()) continue;
    known = known.substr(0, kind) + std::string(layer.prefix) + "." +
            std::to_string(global->second) + std::string(layer.rest);
  }
  return known;
}

}  // namespace opguard
