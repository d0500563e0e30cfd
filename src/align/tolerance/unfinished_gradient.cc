// The way of each gradient is followed back by its values, from `<gradients>` to the backward pass.
//
//   <gradients>    w's value v2
//   event 61       w.grad.div_(2)     read v1, wrote v2      writes[v2] = (61, v1)
//   event 60       dp.sum(w.grad)     read v0, wrote v1      writes[v1] = (60, v0)
//   statements     w: 60, 61
//
// Two gradients' ways are compared by boundaries: a loop over parameters is one statement, executed
// once for each.
//
// Counterexample: a statement that makes a new tensor. It writes nothing in place, so no way leads
// through it.
#include "align/tolerance/unfinished_gradient.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "align/values/value_index.h"

namespace opguard {
namespace {

// Gradients that clipping has divided by the same number share their factor up to rounding.
constexpr double kSameShare = 1e-3;

bool same_share(double x, double y) { return std::abs(x / y - 1) < kSameShare; }

}  // namespace

uint32_t UnfinishedGradients::boundary(const EventRef& ref) const {
  return b_.processes[static_cast<size_t>(ref.process)].events[ref.event].boundary;
}

UnfinishedGradients::Statements UnfinishedGradients::statements(const SlotRef& gradient) const {
  const ProcessLog& log = b_.processes[static_cast<size_t>(gradient.event.process)];
  struct Write {
    EventRef event;
    ValueKey before;
  };
  // A value that several statements leave, as a division by 1, is the last one's.
  std::unordered_map<ValueKey, std::vector<Write>, ValueKeyHash> writes;
  uint32_t first = gradient.event.event;
  while (first > 0 && log.events.kind(first - 1) != EventKind::node &&
         log.events.kind(first - 1) != EventKind::accumulate)
    --first;
  for (uint32_t i = first; i < gradient.event.event; ++i) {
    const EventSlots slots = log.slots_of(log.events[i]);
    for (const Slot& written : slots) {
      if (written.kind != SlotKind::written || !has_value(written)) continue;
      for (const Slot& read : slots)
        if (read.kind == SlotKind::in && read.name == written.name && has_value(read)) {
          writes[value_key(log, written)].push_back(
              {{gradient.event.process, i}, value_key(log, read)});
          break;
        }
    }
  }
  Statements found;
  const EventSlots all = log.slots_of(log.events[gradient.event.event]);
  for (const Slot& slot : all) {
    const std::string_view name = log.text(slot.name);
    if (kind_of_slot(name) != "grad:" || !has_value(slot)) continue;
    std::vector<EventRef>& own = found[std::string(name_in(name))];
    ValueKey value = value_key(log, slot);
    uint32_t before = gradient.event.event;
    for (bool more = true; more;) {
      more = false;
      const auto writers = writes.find(value);
      if (writers == writes.end()) break;
      for (auto it = writers->second.rbegin(); it != writers->second.rend() && !more; ++it)
        if (it->event.event < before) {
          own.push_back(it->event);
          before = it->event.event;
          value = it->before;
          more = true;
        }
    }
    std::reverse(own.begin(), own.end());
  }
  return found;
}

std::map<std::string, const ComparedTensor*> UnfinishedGradients::gradients(uint32_t step) const {
  std::map<std::string, const ComparedTensor*> found;
  for (const ComparedTensor& tensor : comparison_.tensors) {
    const std::string& slot = comparison_.texts.text(tensor.a.slot);
    if (tensor.a.activity.step == step && kind_of_slot(slot) == "grad:" && !tensor.b.empty())
      found.try_emplace(std::string(name_in(slot)), &tensor);
  }
  return found;
}

bool UnfinishedGradients::backward_is_right(uint32_t step) const {
  return std::none_of(
      comparison_.tensors.begin(), comparison_.tensors.end(), [&](const ComparedTensor& tensor) {
        return tensor.a.activity.step == step && tensor.state == TensorState::beyond &&
               !comparison_.texts.text(tensor.a.node).empty();
      });
}

bool UnfinishedGradients::is_whole(const std::string& parameter,
                                   const std::vector<int32_t>& ranks) const {
  for (const ComparedTensor& tensor : comparison_.tensors)
    if (comparison_.texts.text(tensor.a.slot) == "param:" + parameter)
      return tensor.placement.kind == PlacementKind::replicated &&
             std::all_of(ranks.begin(), ranks.end(), [&](int32_t rank) {
               return std::find(tensor.ranks.begin(), tensor.ranks.end(), rank) !=
                      tensor.ranks.end();
             });
  return false;
}

std::optional<EventRef> UnfinishedGradients::missed(const std::vector<EventRef>& own,
                                                    const std::vector<EventRef>& other,
                                                    bool communicating) const {
  for (const EventRef& event : other) {
    const ProcessLog& log = b_.processes[static_cast<size_t>(event.process)];
    if (communicates(log.events[event.event]) == communicating &&
        std::none_of(own.begin(), own.end(),
                     [&](const EventRef& e) { return boundary(e) == boundary(event); }))
      return event;
  }
  return {};
}

std::optional<UnfinishedGradient> UnfinishedGradients::scaled(const ComparedTensor& tensor) const {
  const uint32_t step = tensor.a.activity.step;
  const auto all = gradients(step);
  const auto share = [](const ComparedTensor* t) {
    return t->state == TensorState::scaled ? t->placement.factor : 1;
  };
  const ComparedTensor* usual = nullptr;
  std::string usual_name;
  ptrdiff_t most = 0;
  for (const auto& [name, gradient] : all) {
    if (gradient->state != TensorState::scaled && gradient->state != TensorState::equal) continue;
    const auto same = std::count_if(all.begin(), all.end(), [&, of = gradient](const auto& other) {
      return same_share(share(other.second), share(of));
    });
    if (same > most) {
      most = same;
      usual = gradient;
      usual_name = name;
    }
  }
  if (static_cast<size_t>(most) * 2 <= all.size()) return {};
  for (const auto& [name, gradient] : all) {
    if (gradient->state != TensorState::scaled || same_share(share(gradient), share(usual)))
      continue;
    Statements of_rank = statements(gradient->b.front());
    const auto other = of_rank.find(usual_name);
    if (other == of_rank.end()) return {};
    if (const auto event = missed(of_rank[name], other->second, false))
      return UnfinishedGradient{*event, name, usual_name, share(gradient) / share(usual)};
    return {};
  }
  return {};
}

std::optional<UnfinishedGradient> UnfinishedGradients::left_in_parts(
    const ComparedTensor& tensor) const {
  const uint32_t step = tensor.a.activity.step;
  const std::string& module = comparison_.texts.text(tensor.a.activity.module);
  if (module.empty() || comparison_.texts.text(tensor.a.node).empty() || !backward_is_right(step))
    return {};
  for (const auto& [name, gradient] : gradients(step)) {
    if (!name.starts_with(module + ".") || gradient->state == TensorState::equal ||
        !is_whole(name, tensor.ranks))
      continue;
    Statements of_rank = statements(gradient->b.front());
    const std::vector<EventRef>& own = of_rank[name];
    for (const auto& [other, passed] : of_rank)
      if (const auto event = missed(own, passed, true))
        return UnfinishedGradient{.event = *event, .gradient = name, .other = other};
    if (!own.empty())
      return UnfinishedGradient{.event = own.front(), .gradient = name, .other = ""};
  }
  return {};
}

}  // namespace opguard
