// align/pair/flow_graph.h: who made what an operator reads, and who reads what it leaves, in a
// stretch of one run.
//
//   0  h = norm(x)      port 1 (out) value P in block 7
//   1  w = h.view(-1)   port 0 (in)  P in block 7: made by 0
//   2  y = h * w        ports 0 and 1: the last who left P in that block, 1
//
// The maker is the last event before the reader that left this value in this very block. Where the
// block is not known, it is the last that left a value of this name (of zeros, nobody: every
// operator leaves some). Linear in the slots of the stretch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "align/pair/sequence.h"
#include "record/record.h"

namespace opguard {

// One side of a sequence: its events in the log, and a token for each.
struct TokenSequence {
  const ProcessLog& log;
  const std::vector<uint32_t>& events;  // indices in log.events, increasing
  const std::vector<Token>& tokens;
};

// One tensor argument or result.
struct Port {
  uint64_t value = 0;  // name of its value, equal under any reshape; 0: none, or zeros
  uint64_t place = 0;  // value and memory block; 0: not known
  SlotKind kind = SlotKind::in;
  bool by_block = false;  // the maker left it in this very block
  uint32_t maker = kNone, maker_port = 0;
};

struct Reader {
  uint32_t event, port;
};

// The flow inside a stretch of one side. Events are numbered from its begin.
class FlowGraph {
 public:
  FlowGraph(const TokenSequence& side, uint32_t begin, uint32_t end);

  uint32_t begin() const { return begin_; }
  uint32_t size() const { return uint32_t(first_.size() - 1); }
  uint32_t port_count(uint32_t event) const { return uint32_t(first_[event + 1] - first_[event]); }
  const Port& port(uint32_t event, uint32_t index) const { return ports_[first_[event] + index]; }
  std::span<const Reader> readers(uint32_t event) const {
    return std::span(readers_).subspan(first_reader_[event],
                                       first_reader_[event + 1] - first_reader_[event]);
  }

 private:
  class Makers;
  void note_readers();
  void link(uint32_t event, Makers& makers);

  uint32_t begin_;
  std::vector<uint64_t> first_;
  std::vector<Port> ports_;
  std::vector<Reader> readers_;
  std::vector<uint32_t> first_reader_;  // by event, and their end
};

}  // namespace opguard
