// runtime/recorder/tickets.h: the values that devices still owe us, by ticket, from their launch
// until the events that wait for them are encoded.
//
//   the program's thread   issue(stream 2) = ticket 81    launched({81})    the event waits with 81
//   the device                                 kernel runs ... value -> ring
//   the encoding thread                                              fetch, complete: 81 = 9f31...
//
// The program's threads issue tickets, with the GIL held; the thread that encodes takes the values
// in. No call here waits for a device but fetch(), which is that thread's. So training never waits
// for a fingerprint.
//
// Counterexample: a launch that failed owes nothing, and its ticket is unreadable at once. A
// captured graph's ticket stands for as many values as the graph has replays (kOfGraph).
//
// The cost: 96 bytes a value that is owed or was lately, 25 MB once kKept of them have been
// reached.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "record/late_values.h"
#include "runtime/host/devices.h"

namespace opguard {

class Tickets final : public LateValues {
 public:
  // So many values are remembered, the latest; 96 bytes each, the first time it is reached.
  static constexpr uint64_t kKept = uint64_t{1} << 18;
  // Of a stream being captured: it stands for as many values as the graph has replays.
  static constexpr uint64_t kOfGraph = uint64_t{1} << 63;

  // A small number for the stream, from 1, the same whenever it is met again.
  uint32_t stream(const Device* device, int index, void* handle);

  void device_of(uint32_t stream, const Device*& device, int& index);

  // A value that is launched next, on the stream.
  uint64_t issue(uint32_t stream);
  // `count` of one launch, of which the first `launched` will come; the others are unreadable.
  void launched(const uint64_t* tickets, size_t count, size_t launched);
  // May its value be repeated by a later event? It did not get lost, and is not about to be
  // forgotten.
  bool lasts(uint64_t ticket);

  // Graphs, by their number.
  uint64_t open_graph(const Device* device);
  uint64_t issue_in_graph(uint64_t graph);
  // Before it is launched again: the ticket, of this replay, of the graph's first one; those that
  // follow it are of those that follow. 0: it has none, or too many.
  uint64_t replayed(uint64_t graph, uint32_t stream);
  // That launch failed.
  void not_replayed(uint64_t graph);
  void close_graph(uint64_t graph);
  static uint64_t graph_of(uint64_t ticket) { return (ticket & ~kOfGraph) >> 32; }
  static uint64_t index_in_graph(uint64_t ticket) { return ticket & 0xffffffffu; }

  // How long fetch() goes on without a single value coming once the log is to be closed. Before it
  // is kRunning times as long, since a device may have to wait for another rank's checkpoint.
  static constexpr int kRunning = 20;
  void set_patience(std::chrono::nanoseconds patience) { patience_ = patience; }
  std::chrono::nanoseconds patience() const { return patience_; }
  void open() { closing_.store(false, std::memory_order_relaxed); }
  void close() { closing_.store(true, std::memory_order_relaxed); }

  bool fetch(const std::vector<Slot>& slots, uint64_t wait_ns) override;
  Outcome complete(Event& event, Slot& slot) override;

 private:
  enum class State : uint8_t { none, waiting, there, lost, unreadable };
  struct Entry {
    uint64_t ticket = 0;
    uint64_t launch = 0;  // number of its launch, from 1; 0: not yet
    uint32_t stream = 0;
    State state = State::none;
    opguard_value value{};
  };
  struct Stream {
    const Device* device;
    int index;
    void* handle;
    uint64_t come = 0;  // the latest launch of which something came
    uint64_t come_before =
        0;  // the same when drain() was last called: no earlier one is on its way
  };
  struct Account {
    uint64_t launched = 0, come = 0, given_up = 0;
  };
  struct Replay {
    uint64_t first;
    uint32_t stream;
  };
  struct Graph {
    const Device* device;
    uint32_t count = 0;
    std::deque<Replay> replays;  // of which values are to come
    uint64_t finished = 0;       // replays before the first of them
    std::vector<uint64_t> come;  // of each ticket, values
    std::vector<bool> dead;      // of each ticket: nothing comes of it
    uint32_t live = 0;           // tickets that are not
    uint32_t reached = 0;        // live tickets that have their value of the first of the replays
    uint64_t lost_before = 0;    // the device's losses when all was as it should be
    bool adrift = false;         // which replay a value is of is not known since one was lost
    bool closed = false;
  };

  // With mutex_ held.
  Entry& place(uint64_t ticket) { return entries_[ticket % kKept]; }
  Entry* find(uint64_t ticket);
  void enter(uint64_t ticket, uint32_t stream, uint64_t launch);
  void deliver(const Device* device, const opguard_value& value);
  void come(Entry& entry, const opguard_value& value);
  void give_up(Entry& entry);
  void set_adrift(Graph& graph);
  bool all_settled(const Device* device, uint64_t lost);
  void count_reached(Graph& graph);

  void drain(const Device* device, uint64_t wait_ns);
  // The first ticket's device that is neither there nor given up.
  const Device* missing(const std::vector<Slot>& slots, bool give_up_all);

  std::mutex mutex_;
  std::unique_ptr<Entry[], void (*)(void*)> entries_{nullptr, nullptr};
  uint64_t next_ = 0, launches_ = 0, next_graph_ = 0;
  std::vector<Stream> streams_;
  std::unordered_map<const Device*, Account> accounts_;
  std::unordered_map<uint64_t, Graph> graphs_;
  uint64_t delivered_ = 0;

  std::chrono::nanoseconds patience_ = std::chrono::seconds(30);
  std::atomic<bool> closing_{false};
  // Of the thread that encodes.
  bool waiting_ = false;
  uint64_t seen_ = 0;
  std::chrono::steady_clock::time_point since_;
};

Tickets& tickets();
// In a forked child: others from now on. The parent's devices are not there.
void tickets_after_fork();

}  // namespace opguard
