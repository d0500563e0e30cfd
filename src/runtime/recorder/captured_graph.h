// runtime/recorder/captured_graph.h: the events of a program that captures a device graph
// (torch.cuda.graph). The capture itself computes nothing and is not in the log. Each replay puts
// the events there again, with coordinates of its own, and its own values.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "record/record.h"

namespace opguard {

struct CapturedGraph {
  // What happened, in order: an event was added, or the program was seen to go on.
  enum class Kind : uint8_t { event, backward, step, marked_step, marked_micro_batch };
  struct Entry {
    Kind kind = Kind::event;
    Event event;
    std::vector<Slot> slots;
  };

  uint32_t number = 0;   // in this process, from 0
  uint64_t tickets = 0;  // Tickets::open_graph(); 0 before its first launch
  uint32_t thread = 0;   // that captures
  uint64_t generation = 0;
  bool open = true;
  std::vector<Entry> entries;
  uint32_t events = 0;             // among them
  std::vector<uint32_t> replayed;  // of each event: its index in the log at the latest replay
};

// An event of a capture has no index in the log: an index like this one, which replays translate,
// and a `begin` from kFirstCaptured on.
constexpr uint32_t kCapturedIndex = 0x80000000u;
constexpr uint64_t kFirstCaptured = uint64_t{1} << 48;
inline bool is_captured(uint32_t index) { return index != kNone && index >= kCapturedIndex; }

}  // namespace opguard
