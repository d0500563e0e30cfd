// Written is what has another version than before the call. What writes without counting is read
// again, and counts if its value is another one.
//
//   x.add_(1)                       version 3 -> 4: written
//   dist.all_reduce(x)              read again: 9f31 -> 5d02: written
//   numpy's a += 1                  read again
//   a package without probes        may write unseen: what is known of its arguments is forgotten
//   F.batch_norm                    its running statistics are read again
//
// Of a value on a device neither is known yet: the slot has both tickets, and the encoding thread
// decides (`flat` holds the earlier one).
//
// Also written are tensors that a module or an optimizer among the arguments holds since: a state
// that was loaded, the first gradients.
#include "runtime/entries/collective.h"
#include "runtime/host/object.h"
#include "runtime/probe/operation.h"
#include "runtime/recorder/held.h"

namespace opguard {
namespace {

constexpr size_t kFewItems = 16;

// The same object again, further back in the list. seen: those of long lists.
bool repeated(const std::vector<Collector::Item>& items, size_t at,
              std::optional<std::unordered_set<PyObject*>>& seen) {
  PyObject* object = items[at].object.get();
  if (seen) return !seen->insert(object).second;
  for (size_t i = 0; i < at; ++i)
    if (items[i].object.get() == object) return true;
  return false;
}

}  // namespace

bool Operation::overwritten(PyObject* object) const {
  return flight_ && flight_of(flight_).overwrites(object);
}

// What batch norm's kernels may write without counting: one tensor a channel, or a buffer of the
// module that is called.
bool Operation::running_statistic(size_t input) {
  if (callee_.statistics) return input > 0;
  if (!(inputs_.slots()[input].flags & kParameter)) return false;
  const TorchApi* torch = torch_api();
  return torch != nullptr && !has_type(inputs_.items()[input].object.get(), torch->parameter_type);
}

void Operation::written_inputs(std::vector<Slot>& slots, const OwnWork& work) {
  std::optional<Collector> collector;  // most operators write nothing
  auto written = [&]() -> Collector& {
    if (!collector) {
      collector.emplace(work.torch(), SlotKind::written).widen();
      collector->show(watch_.get());
    }
    return *collector;
  };
  // Code of others may write through pointers; running statistics are.
  const bool may_write_unseen =
      callee_.statistics || (callee_.foreign && !callee_.torch && !callee_.of_aten);
  if (callee_.loads || callee_.unseen) storages().forget_all();
  const std::vector<Collector::Item>& items = inputs_.items();
  std::optional<std::unordered_set<PyObject*>> seen;
  if (items.size() > kFewItems) seen.emplace();
  for (size_t i = 0; i < items.size(); ++i) {
    const Collector::Item& item = items[i];
    PyObject* object = item.object.get();
    if (repeated(items, i, seen)) continue;
    // Collectives and numpy write without counting.
    bool uncounted = collective_ || item.numpy || callee_.unseen || mark_ == Mark::writes ||
                     running_statistic(i);
    if (!uncounted && tensor_version(object) == item.version) {
      if (may_write_unseen) storages().forget(object);
      continue;
    }
    if (!item.numpy) storages().forget(object);
    written().read(uncounted ? Reading::forced : Reading::usual);
    written().add_tensors(item.name, object);
    std::vector<Slot>& w = written().slots();
    if (uncounted && !w.empty() && !overwritten(object)) {
      if (w.back().value == item.value)
        w.pop_back();
      else if (item.pending && (w.back().flags & kPending))
        w.back().flat = item.value.h;  // decided when both are there
    }
  }
  // Tensors the call put in place of others, or made: a loaded state, first gradients.
  for (Holder& holder : holders_)
    for (const Held& held : held_tensors(*work.torch(), holder.object.get(), holder.state))
      if (holder.before.insert(held.tensor.get()).second)
        written().add_tensors(holder.prefix + held.name, held.tensor.get(), held.flags);
  if (!collector) return;
  if (collector->beyond() > 0) recorder().lose(collector->beyond());
  slots.insert(slots.end(), collector->slots().begin(), collector->slots().end());
}

}  // namespace opguard
