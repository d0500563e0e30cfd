// record/record.h: the run log in memory. On disk: docs/formats/record-format.md.
//
//   Run            of a job: a ProcessLog a process, by rank and start
//   ProcessLog     strings, metas, events, slots, locations, settings; gaps of missing records
//   Event          one execution of a boundary; its slots are the tensors it read and left
//   record         one slot of one event
//
// Counterexample: an event keeps no text of its own. `boundary` and `scalars` are numbers of
// ProcessLog::strings, so two logs number the same text differently.
//
// Used by the runtime and by align; uses nothing. The cost: slots stay in the mapped file and are
// decoded where they are asked for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "record/calls.h"
#include "record/event.h"
#include "record/event_slots.h"
#include "record/event_table.h"
#include "record/location.h"
#include "record/observation_code.h"
#include "record/provenance.h"
#include "record/sketch_code.h"
#include "record/slot_table.h"

namespace opguard {

// A place in a log where records are missing.
struct Gap {
  uint64_t event = 0;    // index in ProcessLog::events before which they would be
  uint64_t records = 0;  // 0: not known
  bool operator==(const Gap&) const = default;
};

// The log of one process.
struct ProcessLog {
  std::string path;
  int32_t rank = 0, world = 1;
  int64_t pid = 0, start_ns = 0;                // wall clock, to order processes of one rank
  std::map<std::string, std::string> settings;  // "torch", "deterministic_algorithms", "seed", ...
  std::set<std::string> set_again;              // settings that had another value before: a seed
  std::vector<std::string> strings;
  std::vector<Meta> metas;
  EventTable events;  // in order of completion
  SlotTable slots;
  SketchTable sketches;                       // of mode `sketch`
  ObservationTable observations;              // of `run --observe`
  std::map<std::string, Location> locations;  // by boundary id
  bool closed = false;                        // false: cut short; what was flushed is here
  bool bound = true;  // false: its format does not notice whole chunks that are dropped, doubled or
                      // moved (docs/formats/record-format.md, before version 8)
  uint64_t lost = 0;  // records the runtime says it could not keep
  std::vector<Gap> gaps;  // where those were, and where a chunk is damaged; by event. A log that
                          // only ends early has none
  std::string damage;     // "" or what the reader had to leave out, with the byte position
  // Of its run: never null.
  std::shared_ptr<const Provenance> provenance = std::make_shared<const Provenance>();

  // Its process was killed or its disk was full: a true beginning of what there was to record.
  bool cut_short() const { return gaps.empty() && lost == 0 && (!closed || !damage.empty()); }
  // for (const Slot& slot : log.slots_of(event)) ...
  EventSlots slots_of(const Event& event) const& {
    return slots.range(event.first_slot, event.slot_count);
  }
  EventSlots slots_of(const Event& event) const&& = delete;
  const std::string& text(uint32_t string) const;  // "" for kNone
  // As the program writes it, "x.mul_"; "" where the event's place is not known.
  std::string_view callee(const Event& event) const;
};

struct Run {
  std::string dir;
  std::vector<ProcessLog> processes;  // by (rank, start_ns)
  Calls calls;                        // empty where nobody told
  std::shared_ptr<const Provenance> provenance = std::make_shared<const Provenance>();
  uint64_t records() const;  // slots of all processes
  bool cut_short() const;    // the log of some process is
};

struct ReadOptions {
  // False: a log is read up to its first damage, so that nothing is ever compared across it. True:
  // damaged parts are passed over, each a Gap. Indexes of events then count what is there. Strings
  // and shapes that were in a damaged part are empty.
  bool salvage = false;
};

// Reads one log file. False on failure: `error` says why in one sentence ("<path>: ...": another
// version, not a log, cannot be read). A log cut short is read up to the cut. The file stays mapped
// for as long as `log` lives. It must not be written over meanwhile; it may be appended to,
// renamed, removed. What is allocated is at most 100 times its size.
bool read_log(const std::string& path, ProcessLog& log, std::string& error,
              const ReadOptions& options = {});
// The same of a log in memory, all of whose slots are decoded. `error` is without a path.
bool parse_log(std::string_view bytes, ProcessLog& log, std::string& error,
               const ReadOptions& options = {});
// Every *.log and *.log.incomplete of a folder. sites.json beside them is read by load_run()
// (align/pair/run.h).
bool read_run(const std::string& dir, Run& run, std::string& error);

std::string dump(const ProcessLog& log);

}  // namespace opguard
