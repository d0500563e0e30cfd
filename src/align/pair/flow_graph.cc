// An open hash table of makers, filled as the events go by: what a reader finds in it is the last
// maker before it. A value is noted under two keys, its place (block and bytes) and its name.
//
//   event 5 leaves P in block 7     makers[place(7, P)] = 5, makers[name(P)] = 5
//   event 9 reads P in block 7      by place: 5, by_block
//   event 9 reads P in block 8      by name: 5
//
// Readers are the same links turned round, in one vector by maker (a counting sort).
//
// The cost: 16 bytes a table entry, one and a half times as many entries as keys, rounded up to a
// power of two.
#include "align/pair/flow_graph.h"

#include <bit>

#include "align/pair/mix.h"

namespace opguard {
namespace {

Port port_of(const Slot& slot) {
  Port port;
  port.kind = slot.kind;
  if (slot.flags & (kUnreadable | kUninitialised)) return port;
  if (slot.value != Fingerprint{}) port.value = mix(1, slot.flat);
  if (slot.storage != 0) port.place = mix(mix(2, slot.storage), slot.flat);
  return port;
}

}  // namespace

// The last maker of each key; keys are hashes already, never 0.
class FlowGraph::Makers {
 public:
  struct Entry {
    uint64_t key = 0;
    uint32_t event = 0, port = 0;
  };
  // Room for so many keys.
  explicit Makers(size_t most) : entries_(std::bit_ceil(most + most / 2 + 1)) {}
  // Empty, key 0: none.
  const Entry& find(uint64_t key) const { return entries_[place(key)]; }
  void set(uint64_t key, uint32_t event, uint32_t port) {
    entries_[place(key)] = {key, event, port};
  }

 private:
  size_t place(uint64_t key) const {
    const size_t mask = entries_.size() - 1;
    size_t at = key & mask;
    while (entries_[at].key != 0 && entries_[at].key != key) at = (at + 1) & mask;
    return at;
  }

  std::vector<Entry> entries_;
};

FlowGraph::FlowGraph(const TokenSequence& side, uint32_t begin, uint32_t end) : begin_(begin) {
  first_.reserve(end - begin + 1);
  ports_.reserve(3 * size_t{end - begin});
  std::vector<bool> is_state;  // by event
  size_t left = 0;             // ports
  for (uint32_t e = begin; e < end; ++e) {
    const Event event = side.log.events[side.events[e]];
    first_.push_back(ports_.size());
    const EventSlots slots = side.log.slots_of(event);
    for (const Slot& slot : slots) {
      ports_.push_back(port_of(slot));
      left += slot.kind != SlotKind::in;
    }
    is_state.push_back(event.kind == EventKind::state);
  }
  first_.push_back(ports_.size());
  Makers makers(2 * left);
  for (uint32_t e = 0; e < size(); ++e)
    if (!is_state[e]) link(e, makers);
  note_readers();
}

// Readers of each event, in the order of the run.
void FlowGraph::note_readers() {
  first_reader_.assign(size() + 1, 0);
  for (const Port& port : ports_)
    if (port.maker != kNone) ++first_reader_[port.maker + 1];
  for (uint32_t e = 0; e < size(); ++e) first_reader_[e + 1] += first_reader_[e];
  readers_.resize(first_reader_.back());
  std::vector<uint32_t> next(first_reader_.begin(), first_reader_.end() - 1);
  for (uint32_t e = 0; e < size(); ++e)
    for (uint64_t p = first_[e]; p < first_[e + 1]; ++p)
      if (ports_[p].maker != kNone)
        readers_[next[ports_[p].maker]++] = {e, uint32_t(p - first_[e])};
}

void FlowGraph::link(uint32_t event, Makers& makers) {
  const uint64_t from = first_[event], to = first_[event + 1];
  for (uint64_t p = from; p < to; ++p) {
    Port& port = ports_[p];
    if (port.kind != SlotKind::in) continue;
    for (uint64_t key : {port.place, port.value}) {
      if (key == 0) continue;
      const Makers::Entry& found = makers.find(key);
      if (found.key == 0) continue;
      port.maker = found.event;
      port.maker_port = found.port;
      port.by_block = key == port.place;
      break;
    }
  }
  for (uint64_t p = from; p < to; ++p)
    if (ports_[p].kind != SlotKind::in)
      for (uint64_t key : {ports_[p].place, ports_[p].value})
        if (key != 0) makers.set(key, event, uint32_t(p - from));
}

}  // namespace opguard
