// What a ticket may become: waiting, then there, lost or unreadable.
//
//   launched 81, 82, 83, one after the other, on one stream
//   81 and 83 come, the device counts one lost     82 is given up: what a stream did earlier, came
//                                                  earlier or never
//   a launch that failed                           unreadable at once; nothing is waited for
//   nothing comes any more                         given up after `patience`, longer while it runs
//
// A captured graph issues tickets of its own, and each replay numbers of its own. The k-th value of
// a graph's ticket is the k-th replay's. Counterexample: as soon as the device lost one, nobody
// knows which. Then all that wait for that graph are given up, until nothing is on its way
// (adrift).
//
// The cost: an entry is found by its number, and its place is used again kKept tickets later. The
// lock is held for a look-up, never while a device is asked.
#include "runtime/recorder/tickets.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace opguard {

namespace {
Tickets* g_tickets = new Tickets;  // never destroyed, as the recorder
}

Tickets& tickets() { return *g_tickets; }

void tickets_after_fork() {
  // What the parent's threads were in the middle of is left as it is.
  auto* fresh = new Tickets;
  fresh->set_patience(g_tickets->patience());
  g_tickets = fresh;
}

// Streams are few and asked for in turn: they are looked through.
uint32_t Tickets::stream(const Device* device, int index, void* handle) {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < streams_.size(); ++i) {
    const Stream& s = streams_[i];
    if (s.device == device && s.index == index && s.handle == handle)
      return static_cast<uint32_t>(i + 1);
  }
  streams_.push_back({device, index, handle});
  return static_cast<uint32_t>(streams_.size());
}

void Tickets::device_of(uint32_t stream, const Device*& device, int& index) {
  std::lock_guard lock(mutex_);
  device = streams_[stream - 1].device;
  index = streams_[stream - 1].index;
}

Tickets::Entry* Tickets::find(uint64_t ticket) {
  if (!entries_ || ticket == 0) return nullptr;
  Entry& entry = place(ticket);
  return entry.ticket == ticket ? &entry : nullptr;
}

// Whoever had the place before, kKept tickets ago, is forgotten.
void Tickets::enter(uint64_t ticket, uint32_t stream, uint64_t launch) {
  if (!entries_) {
    // Zeroed by the system as it is touched: a short run pays for what it uses.
    void* memory = std::calloc(kKept, sizeof(Entry));
    if (memory == nullptr) throw std::bad_alloc();
    entries_ = {static_cast<Entry*>(memory), std::free};
  }
  Entry& entry = place(ticket);
  entry.ticket = ticket;
  entry.launch = launch;
  entry.stream = stream;
  entry.state = State::waiting;
}

uint64_t Tickets::issue(uint32_t stream) {
  std::lock_guard lock(mutex_);
  enter(++next_, stream, 0);
  return next_;
}

// All of one launch have its number: by it a stream's order is told.
void Tickets::launched(const uint64_t* all, size_t count, size_t launched) {
  std::lock_guard lock(mutex_);
  const uint64_t launch = ++launches_;
  for (size_t i = 0; i < count; ++i) {
    if (all[i] & kOfGraph) {  // launched by the replays
      auto graph = graphs_.find(graph_of(all[i]));
      if (i < launched || graph == graphs_.end()) continue;
      graph->second.dead[index_in_graph(all[i])] = true;
      --graph->second.live;
      continue;
    }
    Entry* entry = find(all[i]);
    if (entry == nullptr) continue;
    entry->launch = launch;
    if (i < launched)
      ++accounts_[streams_[entry->stream - 1].device].launched;
    else
      entry->state = State::unreadable;
  }
}

// Half the places are kept back, for what is issued until the event is encoded.
bool Tickets::lasts(uint64_t ticket) {
  std::lock_guard lock(mutex_);
  if (ticket & kOfGraph) return true;
  const Entry* entry = find(ticket);
  return entry != nullptr && next_ - ticket < kKept / 2 &&
         (entry->state == State::waiting || entry->state == State::there);
}

uint64_t Tickets::open_graph(const Device* device) {
  std::lock_guard lock(mutex_);
  Graph& graph = graphs_[++next_graph_];
  graph.device = device;
  return next_graph_;
}

uint64_t Tickets::issue_in_graph(uint64_t number) {
  std::lock_guard lock(mutex_);
  Graph& graph = graphs_.at(number);
  graph.come.push_back(0);
  graph.dead.push_back(false);
  ++graph.live;
  return kOfGraph | number << 32 | graph.count++;
}

// A graph with 3 tickets is given 3 numbers for each replay, dead ones too: the i-th is ticket i's.
uint64_t Tickets::replayed(uint64_t number, uint32_t stream) {
  std::lock_guard lock(mutex_);
  auto found = graphs_.find(number);
  if (found == graphs_.end()) return 0;
  Graph& graph = found->second;
  if (graph.count == 0 || graph.count > kKept / 4) return 0;
  const uint64_t first = next_ + 1, launch = ++launches_;
  next_ += graph.count;
  for (uint32_t i = 0; i < graph.count; ++i) {
    enter(first + i, stream, launch);
    if (graph.dead[i]) place(first + i).state = State::unreadable;
  }
  if (graph.live == 0) return first;
  accounts_[graph.device].launched += graph.live;
  graph.replays.push_back({first, stream});
  if (graph.adrift)
    for (uint32_t i = 0; i < graph.count; ++i) give_up(place(first + i));
  return first;
}

void Tickets::not_replayed(uint64_t number) {
  std::lock_guard lock(mutex_);
  auto found = graphs_.find(number);
  if (found == graphs_.end() || found->second.replays.empty()) return;
  Graph& graph = found->second;
  for (uint32_t i = 0; i < graph.count; ++i)
    if (Entry* entry = find(graph.replays.back().first + i)) entry->state = State::unreadable;
  accounts_[graph.device].launched -= graph.live;
  graph.replays.pop_back();
}

void Tickets::close_graph(uint64_t number) {
  std::lock_guard lock(mutex_);
  auto found = graphs_.find(number);
  if (found == graphs_.end()) return;
  found->second.closed = true;
  if (found->second.replays.empty()) graphs_.erase(found);
}

// A value that was given up and comes all the same is not taken: its event may be written.
void Tickets::come(Entry& entry, const opguard_value& value) {
  if (entry.state != State::waiting) return;
  // An older plugin's values end before the digest.
  const bool digest = value.flags & OPGUARD_VALUE_DIGEST;
  std::memcpy(&entry.value, &value, digest ? sizeof(value) : offsetof(opguard_value, digest));
  if (!digest) entry.value.digest = 0;
  entry.state = State::there;
  Stream& stream = streams_[entry.stream - 1];
  stream.come = std::max(stream.come, entry.launch);
}

void Tickets::give_up(Entry& entry) {
  if (entry.state != State::waiting) return;
  entry.state = State::lost;
  ++accounts_[streams_[entry.stream - 1].device].given_up;
}

// A value of a graph names a ticket, and which replay's it is follows from how many came before. A
// replay is over once each ticket that is not dead has its value of it.
void Tickets::deliver(const Device* device, const opguard_value& value) {
  std::lock_guard lock(mutex_);
  ++delivered_;
  ++accounts_[device].come;
  if (!(value.ticket & kOfGraph)) {
    if (Entry* entry = find(value.ticket)) come(*entry, value);
    return;
  }
  auto found = graphs_.find(graph_of(value.ticket));
  if (found == graphs_.end()) return;
  Graph& graph = found->second;
  const uint64_t index = index_in_graph(value.ticket);
  if (graph.adrift || index >= graph.count) return;
  const uint64_t replay = graph.come[index]++ - graph.finished;
  if (replay >= graph.replays.size()) return;
  if (Entry* entry = find(graph.replays[replay].first + index)) come(*entry, value);
  if (replay == 0) ++graph.reached;
  while (!graph.replays.empty() && graph.reached == graph.live) {
    graph.replays.pop_front();
    ++graph.finished;
    count_reached(graph);
  }
  if (graph.closed && graph.replays.empty()) graphs_.erase(found);
}

// Of the replay that is the first now: some of its values may be there already.
void Tickets::count_reached(Graph& graph) {
  graph.reached = 0;
  for (uint32_t i = 0; i < graph.count; ++i)
    graph.reached += !graph.dead[i] && graph.come[i] > graph.finished;
}

// Its k-th value is the k-th replay's only as long as none was lost.
void Tickets::set_adrift(Graph& graph) {
  graph.adrift = true;
  for (const Replay& replay : graph.replays)
    for (uint32_t i = 0; i < graph.count; ++i)
      if (Entry* entry = find(replay.first + i)) give_up(*entry);
}

// What was launched has come, or the device counts it as lost.
bool Tickets::all_settled(const Device* device, uint64_t lost) {
  const Account& account = accounts_[device];
  return account.launched <= account.come + lost;
}

// The device calls back for each value. Where its losses have grown, its graphs no longer know
// which replay a value is of.
void Tickets::drain(const Device* device, uint64_t wait_ns) {
  {
    std::lock_guard lock(mutex_);
    for (Stream& stream : streams_)
      if (stream.device == device) stream.come_before = stream.come;
  }
  struct Context {
    Tickets* self;
    const Device* device;
  } context{this, device};
  device->plugin->drain(
      [](void* to, const opguard_value* value) {
        auto* c = static_cast<Context*>(to);
        c->self->deliver(c->device, *value);
      },
      &context, wait_ns);
  const uint64_t lost = device->plugin->lost();
  std::lock_guard lock(mutex_);
  for (auto it = graphs_.begin(); it != graphs_.end();) {
    Graph& graph = it->second;
    if (graph.device == device && lost > graph.lost_before) {
      if (!graph.adrift && !graph.replays.empty()) set_adrift(graph);
      if (graph.adrift ? all_settled(device, lost) : graph.replays.empty()) {
        // Nothing is on its way: the next value is the next replay's.
        graph.adrift = false;
        graph.finished = graph.reached = 0;
        graph.replays.clear();
        graph.come.assign(graph.count, 0);
        graph.lost_before = lost;
      }
    }
    it = graph.closed && graph.replays.empty() ? graphs_.erase(it) : std::next(it);
  }
}

// Both tickets of a slot count: its own, and the one it must differ from.
const Device* Tickets::missing(const std::vector<Slot>& slots, bool give_up_all) {
  const OpenDevices open = open_devices();
  std::unordered_map<const Device*, uint64_t> lost;
  for (size_t i = 0; i < open.count; ++i) lost[open.begin[i]] = open.begin[i]->plugin->lost();
  std::lock_guard lock(mutex_);
  const Device* first = nullptr;
  for (const Slot& slot : slots) {
    if (!(slot.flags & kPending)) continue;
    for (uint64_t ticket : {slot.value.h, slot.flat}) {
      Entry* entry = find(ticket);
      if (entry == nullptr || entry->state != State::waiting) continue;
      const Stream& stream = streams_[entry->stream - 1];
      const Account& account = accounts_[stream.device];
      auto losses = lost.find(stream.device);
      // What a stream did earlier comes no later; and where as many are outstanding as were lost,
      // those are the lost ones.
      const bool gone =
          losses == lost.end() ||
          (entry->launch != 0 &&
           ((entry->launch < stream.come_before && losses->second > account.given_up) ||
            all_settled(stream.device, losses->second)));
      if (gone || give_up_all)
        give_up(*entry);
      else if (first == nullptr)
        first = stream.device;
    }
  }
  return first;
}

// False: some are missing, and it is not yet time to give them up. The time begins anew with each
// value that comes, of whatever slot.
bool Tickets::fetch(const std::vector<Slot>& slots, uint64_t wait_ns) {
  const OpenDevices open = open_devices();
  for (size_t i = 0; i < open.count; ++i) drain(open.begin[i], 0);
  const Device* device = missing(slots, false);
  if (device != nullptr && wait_ns > 0) {
    drain(device, wait_ns);
    device = missing(slots, false);
  }
  if (device == nullptr) {
    waiting_ = false;
    return true;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!waiting_ || seen_ != delivered_) {
    waiting_ = true;
    seen_ = delivered_;
    since_ = now;
  }
  const bool closing = closing_.load(std::memory_order_relaxed);
  if (wait_ns == 0 || now - since_ < patience_ * (closing ? 1 : kRunning)) return false;
  missing(slots, true);
  waiting_ = false;
  return true;
}

// The slot's tickets become its value, or it is unreadable. The device's times go to the event,
// from its first reading to its last; a carried value was read for another event.
LateValues::Outcome Tickets::complete(Event& event, Slot& slot) {
  const uint64_t ticket = slot.value.h, before = slot.flat;
  const auto stream = static_cast<uint32_t>(slot.pattern);
  slot.flags = static_cast<SlotFlags>(slot.flags & ~kPending);
  slot.value = {};
  slot.flat = slot.pattern = 0;
  std::lock_guard lock(mutex_);
  const Entry* entry = find(ticket);
  const bool carried = slot.flags & kCarried;
  if (entry == nullptr || entry->state != State::there) {
    slot.flags |= kUnreadable;
    return entry != nullptr && entry->state == State::unreadable ? Outcome::there : Outcome::lost;
  }
  const opguard_value& value = entry->value;
  slot.value = {value.h, value.m};
  slot.flat = value.flat;
  slot.has_digest = value.flags & OPGUARD_VALUE_DIGEST;
  slot.digest = slot.has_digest ? value.digest : 0;
  if (value.flags & OPGUARD_VALUE_MASK) {
    slot.flags |= kMask;
    slot.pattern = value.pattern;
  }
  if (!carried) {
    if (!(event.flags & kOnDevice)) event.stream = stream;
    event.flags |= kOnDevice;
    if (event.device_start_ns == 0 || value.start_ns < event.device_start_ns)
      event.device_start_ns = value.start_ns;
    event.device_end_ns = std::max(event.device_end_ns, value.end_ns);
  }
  const Entry* was = find(before);
  const bool same = was != nullptr && was->state == State::there && was->value.h == value.h &&
                    was->value.m == value.m;
  return same ? Outcome::unwritten : Outcome::there;
}

}  // namespace opguard
