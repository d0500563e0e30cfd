// record/step_ring.h: the events of a run's last steps, in memory until somebody wants them
// written.
//
//   keep 3      step 7 | step 8 | step 9 ...    as step 10 begins, step 7 is forgotten
//   write()     an ordinary log of steps 8, 9 and 10: numbers of events begin at 0, and occurrences
//
// Strings and shapes are the writer's, which has no file meanwhile; they are as many as the run
// has. What refers to an event that was forgotten refers to none, and what began in a forgotten
// step is left out, though it ended later. Counterexample: a file that is cut at its front. Each
// chunk needs the strings before it.
//
// The cost: 136 bytes an event and 112 a slot, of so many steps as are kept; at most most_bytes.
// Beyond it the oldest steps go early. One step that is larger alone loses its last events,
// counted.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "record/event.h"
#include "record/late_values.h"
#include "record/step_window.h"
#include "record/writer.h"

namespace opguard {

class StepRing {
 public:
  static constexpr size_t kMostBytes = size_t{512} << 20;

  // steps: how many are kept, the one in progress among them; 0: no ring.
  void begin(uint32_t steps, size_t most_bytes = kMostBytes);
  bool on() const { return steps_ > 0; }

  // Events of this step come from now on.
  void begin_step(uint32_t step);
  // As LogWriter::add(), whose number it stands for until write(): below 2^31, and again from 0.
  uint32_t add(const Event& event, const std::vector<Slot>& slots, std::string_view sketches = {});
  // An observation of the step in progress.
  void observe(const ObservedHead& head, std::string_view values);
  // How many events were added in all.
  uint64_t events() const { return added_; }
  // Takes in what devices have computed by now of the steps that are over.
  void settle(LateValues& late);

  // All that it holds, to a writer that is open and has no event so far. Waits for the disk.
  void write(LogWriter& writer) const;
  // Which steps those are, from the first to the last.
  StepWindow window() const;
  // Steps that went early, since they did not fit.
  uint32_t went_early() const { return went_early_; }
  bool empty() const;
  void clear();

 private:
  struct Step {
    uint32_t step = 0;
    uint64_t first = 0;  // number of its first event
    std::vector<Event> events;
    std::vector<Slot> slots;
    std::string sketches;
    std::vector<ObservedHead> observations;
    std::string observed;                // their values
    std::vector<uint32_t> sketch_sizes;  // by event; empty: none has any
    uint64_t lost = 0;
    size_t size_bytes() const;
  };
  void forget_first();
  void write_observations(const Step& step, const std::vector<uint32_t>& before, uint32_t written,
                          LogWriter& writer) const;

  uint32_t steps_ = 0, went_early_ = 0;
  size_t most_bytes_ = kMostBytes, bytes_ = 0;  // of steps that are over
  uint64_t added_ = 0;
  std::deque<Step> held_;
};

}  // namespace opguard
