// Four passes, each over what the one before has left: parameters, names, results, moved elements.
// pairs() has their order. What lies in `known` is the reference's, and is compared with nothing.
#include "align/tolerance/port_values.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "align/tolerance/joined_parameters.h"
#include "align/tolerance/longest_in_order.h"
#include "align/values/value_index.h"
#include "operators/operators.h"
#include "record/sketch.h"

namespace opguard {
namespace {

constexpr size_t kMostMatches = 64;  // of one result
constexpr size_t kMostExamples = 4;
// What rounding moves further, as memory that nobody wrote, is no one's partner: two values that
// have nothing in common are 1.4 apart.
constexpr double kMostAllowed = 0.25;
// A checkpoint was rounded to nothing else: sketches of logs may be so far apart.
constexpr double kSameContent = 1e-9;

uint64_t count_elements(const Meta& meta) {
  uint64_t n = 1;
  for (const int64_t size : meta.shape) n *= static_cast<uint64_t>(size);
  return n;
}

// Zeros, which nothing is paired with, of a tensor without a sketch.
SketchSums own_sums(SketchReader& reader, const SlotRef& at) {
  const Sketch* own = reader.own(at);
  return own == nullptr ? SketchSums{} : own->sums;
}

// Sketches of two tensors can be compared where these agree: rows may be grouped otherwise.
std::pair<uint64_t, int64_t> form_of(const Meta& meta) {
  return {count_elements(meta), meta.shape.empty() ? 1 : meta.shape.back()};
}

// Numbers of tensors of the first step's `<parameters>`.
std::vector<uint32_t> first_parameters(const ProcessTensors& tensors, const Texts& texts) {
  std::vector<uint32_t> found;
  uint32_t step = kNone;
  for (uint32_t i = 0; i < tensors.tensors.size(); ++i) {
    const SketchedTensor& t = tensors.tensors[i];
    if (t.activity.kind != EventKind::state || t.execution != 0 ||
        texts.text(t.activity.boundary) != "<parameters>")
      continue;
    if (step == kNone) step = t.activity.step;
    if (t.activity.step == step) found.push_back(i);
  }
  return found;
}

// Names of the parameters that the first step's `<gradients>` hold one of.
std::set<std::string_view> trained_names(const ProcessTensors& tensors, const Texts& texts) {
  std::set<std::string_view> found;
  uint32_t step = kNone;
  for (const SketchedTensor& t : tensors.tensors) {
    if (t.activity.kind != EventKind::state || texts.text(t.activity.boundary) != "<gradients>")
      continue;
    if (step == kNone) step = t.activity.step;
    if (t.activity.step == step) found.insert(name_in(texts.text(t.slot)));
  }
  return found;
}

// Those that are trained come first: a program may hold the other's model as well, to load from.
size_t trained_first(std::vector<uint32_t>& parameters, const ProcessTensors& tensors,
                     const Texts& texts) {
  const std::set<std::string_view> trained = trained_names(tensors, texts);
  const auto rest =
      std::stable_partition(parameters.begin(), parameters.end(), [&](uint32_t number) {
        return trained.contains(name_in(texts.text(tensors.tensors[number].slot)));
      });
  return static_cast<size_t>(rest - parameters.begin());
}

class PortPairs {
 public:
  PortPairs(const PortSide& a, const PortSide& b, const Texts& texts, const NoiseLevels& levels,
            double factor)
      : a_(a),
        b_(b),
        texts_(texts),
        levels_(levels),
        factor_(factor),
        read_a_(a.run),
        read_b_(b.run) {
    found_.told = true;
  }

  PortValues pairs() {
    parameters();
    by_names();
    results();
    moved();
    return std::move(found_);
  }

 private:
  using Numbers = std::vector<uint32_t>;

  const SketchedTensor& of_a(uint32_t i) const { return a_.tensors.tensors[i]; }
  const SketchedTensor& of_b(uint32_t i) const { return b_.tensors.tensors[i]; }
  static Slot slot(const PortSide& side, const SlotRef& at) {
    return side.run.processes[static_cast<size_t>(at.event.process)].slots[at.slot];
  }
  static Event event(const PortSide& side, const SlotRef& at) {
    return side.run.processes[static_cast<size_t>(at.event.process)].events[at.event.event];
  }
  SketchSums sums_a(uint32_t i) { return own_sums(read_a_, of_a(i).at); }
  SketchSums sums_b(uint32_t i) { return own_sums(read_b_, of_b(i).at); }

  void parameters();
  void pair_parameters(const Numbers& a, const Numbers& b, std::set<uint32_t>& used_a,
                       std::set<uint32_t>& used_b);
  void join(const Numbers& one, const PortSide& of_one, const Numbers& several,
            const PortSide& of_several, bool one_is_a, std::set<uint32_t>& used_a,
            std::set<uint32_t>& used_b);
  void rename(uint32_t a, uint32_t b, bool equal);
  void by_names();
  void results();
  void pair_nodes(Numbers& a, Numbers& b);
  void pair_results(const Numbers& a, const Numbers& b);
  void moved();

  const PortSide a_, b_;
  const Texts& texts_;
  const NoiseLevels& levels_;
  const double factor_;
  SketchReader read_a_, read_b_;
  PortValues found_;
  std::map<std::string, std::string, std::less<>> equal_,
      moved_;  // the candidate's: the reference's
};

void PortPairs::rename(uint32_t a, uint32_t b, bool equal) {
  const std::string theirs(name_in(texts_.text(of_a(a).slot))),
      mine(name_in(texts_.text(of_b(b).slot)));
  (equal ? equal_ : moved_)[mine] = theirs;
  found_.names.emplace_back(mine, theirs);
  if (!equal) found_.only_by_losses.insert(theirs);
}

// One weight that several make up in the other program: qkv of q, k and v.
void PortPairs::join(const Numbers& one, const PortSide& of_one, const Numbers& several,
                     const PortSide& of_several, bool one_is_a, std::set<uint32_t>& used_a,
                     std::set<uint32_t>& used_b) {
  std::set<uint32_t>&used_one = one_is_a ? used_a : used_b, &used = one_is_a ? used_b : used_a;
  for (const JoinedParameter& joined :
       joined_parameters({one, of_one, used_one}, {several, of_several, used}))
    for (const uint32_t part : joined.parts)
      rename(one_is_a ? joined.whole : part, one_is_a ? part : joined.whole, false);
}

void PortPairs::pair_parameters(const Numbers& a, const Numbers& b, std::set<uint32_t>& used_a,
                                std::set<uint32_t>& used_b) {
  const size_t before = used_b.size();
  for (const uint32_t mine : b)
    for (const uint32_t theirs : a) {
      if (used_a.contains(theirs) ||
          form_of(read_a_.meta(of_a(theirs).at)) != form_of(read_b_.meta(of_b(mine).at)) ||
          distance(sums_b(mine), sums_a(theirs)) > kSameContent * norm(sums_a(theirs)))
        continue;
      used_a.insert(theirs);
      used_b.insert(mine);
      rename(theirs, mine, true);
      break;
    }
  const size_t equal = used_b.size();
  // What one weight is joined of may stand between those of another.
  for (size_t known = SIZE_MAX; known != used_a.size() + used_b.size();) {
    known = used_a.size() + used_b.size();
    join(b, b_, a, a_, /*one_is_a=*/false, used_a, used_b);
    join(a, a_, b, b_, /*one_is_a=*/true, used_a, used_b);
  }
  found_.parameters_equal += equal - before;
  found_.parameters_moved += used_b.size() - equal;
}

// The trained ones have the first choice.
void PortPairs::parameters() {
  const Numbers a = first_parameters(a_.tensors, texts_);
  Numbers b = first_parameters(b_.tensors, texts_);
  const auto rest = b.begin() + static_cast<std::ptrdiff_t>(trained_first(b, b_.tensors, texts_));
  const Numbers trained(b.begin(), rest), frozen(rest, b.end());
  std::set<uint32_t> used_a, used_b;
  pair_parameters(a, trained, used_a, used_b);
  const size_t paired = used_b.size();
  pair_parameters(a, frozen, used_a, used_b);
  found_.parameters = trained.size() + used_b.size() - paired;
}

// Losses, parameters, gradients and optimizers' steps, by their order in the step.
void PortPairs::by_names() {
  using Name = std::tuple<EventKind, std::string, uint32_t, uint32_t, std::string>;
  using Order = std::map<std::tuple<EventKind, std::string, uint32_t>, Numbers>;
  const auto name_of = [&](const SketchedTensor& t, Order& order) {
    const bool state = t.activity.kind == EventKind::state;
    const std::string boundary = state ? texts_.text(t.activity.boundary) : "";
    Numbers& events = order[{t.activity.kind, boundary, t.activity.step}];
    if (events.empty() || events.back() != t.at.event.event) events.push_back(t.at.event.event);
    return Name{t.activity.kind, boundary, t.activity.step,
                static_cast<uint32_t>(events.size() - 1), texts_.text(t.slot)};
  };
  const auto is_named = [](const SketchedTensor& t) {
    return t.activity.kind == EventKind::state || t.activity.kind == EventKind::loss ||
           (t.activity.kind == EventKind::optimizer);
  };
  std::map<Name, uint32_t> names;
  Order of_a_side, of_b_side;
  for (uint32_t i = 0; i < a_.tensors.tensors.size(); ++i)
    if (is_named(of_a(i))) names.try_emplace(name_of(of_a(i), of_a_side), i);
  for (uint32_t i = 0; i < b_.tensors.tensors.size(); ++i) {
    const SketchedTensor& t = of_b(i);
    if (!is_named(t)) continue;
    Name name = name_of(t, of_b_side);
    std::string& text = std::get<4>(name);
    const std::string kind(kind_of_slot(text));
    if (!kind.empty()) {
      const auto known = equal_.find(name_in(text));
      if (known == equal_.end()) {
        if (moved_.contains(name_in(text))) found_.known.push_back(t.at);
        continue;
      }
      text = kind + known->second;
    }
    if (const auto partner = names.find(name); partner != names.end())
      found_.partners[t.at.slot] = partner->second;
  }
}

// A pass at a time, so that no value is paired with one of another step or micro-batch.
void PortPairs::results() {
  using Pass = std::tuple<uint32_t, uint32_t, bool>;  // step, micro-batch, of autograd nodes
  std::map<Pass, std::pair<Numbers, Numbers>> passes;
  const auto pass_of = [](const PortSide& side, const SketchedTensor& t) {
    const Event made = event(side, t.at);
    return Pass{made.step, made.micro_batch, made.kind == EventKind::node};
  };
  const auto is_result = [](const SketchedTensor& t) {
    return t.activity.kind == EventKind::op || t.activity.kind == EventKind::node;
  };
  for (uint32_t i = 0; i < a_.tensors.tensors.size(); ++i)
    if (is_result(of_a(i))) passes[pass_of(a_, of_a(i))].first.push_back(i);
  for (uint32_t i = 0; i < b_.tensors.tensors.size(); ++i)
    if (is_result(of_b(i))) passes[pass_of(b_, of_b(i))].second.push_back(i);
  bool first = true;
  for (auto& [pass, of] : passes) {
    const size_t before = found_.partners.size(), known = found_.known.size();
    if (std::get<2>(pass)) pair_nodes(of.first, of.second);
    pair_results(of.first, of.second);
    if (first && !of.second.empty()) {
      found_.results = of.second.size();
      found_.results_paired = found_.partners.size() - before + found_.known.size() - known;
      first = false;
    }
  }
}

// Of two operators that made the same value, the gradients of what they read are the same, too. A
// gradient that is another one is not known, though the reference has it elsewhere:
//   h = x + y; norm(h) + h      the gradient of h, where norm's part of it is missing
// What moves elements is left out: a value may be shown by several such.
void PortPairs::pair_nodes(Numbers& a, Numbers& b) {
  using Name = std::tuple<uint32_t, uint32_t, uint32_t>;  // forward event, node, slot
  std::map<Name, uint32_t> nodes;
  std::set<uint32_t> used;
  for (const uint32_t i : a)
    nodes.try_emplace({event(a_, of_a(i).at).forward, of_a(i).node, of_a(i).slot}, i);
  for (const uint32_t j : b) {
    const SketchedTensor& mine = of_b(j);
    const ProcessLog& log = b_.run.processes[static_cast<size_t>(mine.at.event.process)];
    const uint32_t forward = event(b_, mine.at).forward;
    if (forward == kNone) continue;
    const auto place = log.locations.find(log.text(log.events[forward].boundary));
    if (place == log.locations.end() || moves_bytes(place->second.callee)) continue;
    const EventSlots slots = log.slots_of(log.events[forward]);
    for (const Slot& made : slots) {
      const auto partner = found_.partners.find(slots.index_of(made));
      if (made.kind != SlotKind::out || partner == found_.partners.end()) continue;
      const SketchedTensor& whole = of_a(partner->second);
      const auto theirs = nodes.find({whole.at.event.event, mine.node, mine.slot});
      if (theirs == nodes.end() || used.contains(theirs->second) ||
          form_of(read_a_.meta(of_a(theirs->second).at)) != form_of(read_b_.meta(mine.at)))
        continue;
      found_.partners[mine.at.slot] = theirs->second;
      used.insert(theirs->second);
      break;
    }
  }
  std::erase_if(a, [&](uint32_t i) { return used.contains(i); });
  std::erase_if(b, [&](uint32_t j) { return found_.partners.contains(of_b(j).at.slot); });
}

// By distance. Where several fit, the longest sequence of pairs in the order of both runs comes
// first, then whatever is left over. What fits and has no partner left is known all the same.
void PortPairs::pair_results(const Numbers& a, const Numbers& b) {
  std::map<std::pair<uint64_t, int64_t>, Numbers> forms;  // of b: places in it
  std::map<std::vector<int64_t>, Numbers> shapes;         // the same
  for (uint32_t j = 0; j < b.size(); ++j) {
    const Meta& meta = read_b_.meta(of_b(b[j]).at);
    forms[form_of(meta)].push_back(j);
    shapes[meta.shape].push_back(j);
  }
  std::vector<SketchSums> sums;
  sums.reserve(b.size());
  for (const uint32_t number : b) sums.push_back(sums_b(number));
  std::vector<Numbers> matches(a.size());
  std::map<std::pair<uint32_t, uint32_t>, uint8_t> exchanged;
  for (uint32_t i = 0; i < a.size(); ++i) {
    const SketchedTensor& theirs = of_a(a[i]);
    const SketchSums whole = sums_a(a[i]);
    const double size = norm(whole);
    if (size == 0) continue;
    const double allowed = std::max(
        factor_ * std::max(levels_.of(theirs), unit_roundoff(read_a_.meta(theirs.at).dtype)),
        kSketchRounding);
    if (allowed > kMostAllowed) continue;
    const auto take = [&](const Numbers& places, const SketchSums& value, const SketchSet* other) {
      for (const uint32_t j : places) {
        if (matches[i].size() >= kMostMatches) return;
        if (distance(sums[j], value) > allowed * size) continue;
        if (std::find(matches[i].begin(), matches[i].end(), j) != matches[i].end()) continue;
        matches[i].push_back(j);
        if (other != nullptr) exchanged[{i, j}] = other->dim;
      }
    };
    if (const auto same = forms.find(form_of(read_a_.meta(theirs.at))); same != forms.end())
      take(same->second, whole, nullptr);
    const Meta& meta = read_a_.meta(theirs.at);
    for (const auto& [shape, places] : shapes) {
      if (shape.size() != meta.shape.size() || shape == meta.shape ||
          !std::is_permutation(shape.begin(), shape.end(), meta.shape.begin()))
        continue;
      const std::vector<SketchSet> sets = read_a_.sets(theirs.at, {shape});
      for (const SketchSet& set : sets)
        if (set.kind == SketchSetKind::exchanged) take(places, set.sketches[0].sums, &set);
    }
    std::sort(matches[i].begin(), matches[i].end());
  }
  std::set<uint32_t> used_a, used_b;
  const auto pair = [&](uint32_t i, uint32_t j) {
    used_a.insert(i);
    used_b.insert(j);
    const SlotRef& mine = of_b(b[j]).at;
    if (const auto dims = exchanged.find({i, j}); dims == exchanged.end()) {
      found_.partners[mine.slot] = a[i];
    } else {
      found_.exchanged[mine.slot] = {a[i], dims->second};
      found_.known.push_back(mine);
    }
  };
  for (const auto& [i, j] : longest_in_order(matches)) pair(i, j);
  for (uint32_t i = 0; i < a.size(); ++i)
    for (const uint32_t j : matches[i])
      if (!used_a.contains(i) && !used_b.contains(j)) pair(i, j);
  std::set<uint32_t> more;
  for (const Numbers& of : matches)
    for (const uint32_t j : of)
      if (!used_b.contains(j) && more.insert(j).second) found_.known.push_back(of_b(b[j]).at);
}

// The same elements in another shape are known. In the same shape they lie at other places.
void PortPairs::moved() {
  std::map<uint64_t, std::vector<Meta>> held;  // of a, by digest
  const auto each_result = [](const PortSide& side, auto take) {
    const size_t process = static_cast<size_t>(side.tensors.tensors.front().at.event.process);
    const ProcessLog& log = side.run.processes[process];
    for (uint32_t i = 0; i < log.events.size(); ++i) {
      if (log.events.kind(i) != EventKind::op && log.events.kind(i) != EventKind::node) continue;
      const EventSlots slots = log.slots_of(log.events[i]);
      for (const Slot& made : slots)
        if (made.kind == SlotKind::out && made.has_digest && made.digest != 0 && has_value(made) &&
            made.meta != kNone)
          take(log.metas[made.meta], made,
               SlotRef{{static_cast<int32_t>(process), i}, slots.index_of(made)});
    }
  };
  each_result(a_, [&](const Meta& meta, const Slot& made, const SlotRef&) {
    std::vector<Meta>& of = held[made.digest];
    if (std::find(of.begin(), of.end(), meta) == of.end()) of.push_back(meta);
  });
  each_result(b_, [&](const Meta& meta, const Slot& made, const SlotRef& at) {
    const auto same = held.find(made.digest);
    if (same == held.end() || found_.partners.contains(at.slot)) return;
    const auto& metas = same->second;
    const bool in_place = std::any_of(metas.begin(), metas.end(),
                                      [&](const Meta& m) { return form_of(m) == form_of(meta); });
    if (!in_place) found_.known.push_back(at);
  });
}

}  // namespace

bool PortValues::is_only_by_losses(std::string_view slot) const {
  return !kind_of_slot(slot).empty() && only_by_losses.contains(std::string(name_in(slot)));
}

std::vector<std::pair<std::string, std::string>> PortValues::examples() const {
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& pair : names)
    if (pair.first != pair.second && found.size() < kMostExamples) found.push_back(pair);
  return found;
}

bool is_port(const ProcessTensors& reference, const ProcessTensors& candidate, const Texts& texts) {
  std::set<uint32_t> names;
  for (const uint32_t i : first_parameters(reference, texts))
    names.insert(reference.tensors[i].slot);
  std::vector<uint32_t> mine = first_parameters(candidate, texts);
  if (const size_t trained = trained_first(mine, candidate, texts); trained > 0)
    mine.resize(trained);
  const auto shared = std::count_if(mine.begin(), mine.end(), [&](uint32_t i) {
    return names.contains(candidate.tensors[i].slot);
  });
  return !names.empty() && !mine.empty() && static_cast<size_t>(shared) * 4 < mine.size();
}

PortValues pair_port(const PortSide& reference, const PortSide& candidate, const Texts& texts,
                     const NoiseLevels& levels, double factor) {
  return PortPairs(reference, candidate, texts, levels, factor).pairs();
}

}  // namespace opguard
