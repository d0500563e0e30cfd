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

#include "record/bring.h"
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

// What `run --keep` left out at the beginning of a log.
struct Removed {
  uint64_t segments = 0, events = 0, records = 0;
  uint32_t last_step = 0;  // of the last of them
  bool operator==(const Removed&) const = default;
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
  // Left out at its beginning: the reader was told to, or they were removed.
  uint64_t events_before = 0;
  Removed removed;
  // Of a log that was read to its end: how many chunks, and what binds them (chunk_chain.h).
  uint64_t chunks = 0, chunk_chain = 0;
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
  // Events before this one, as the writer counts, are stepped over. Of chunks that hold no other
  // one, only the header is read. What refers to them refers to none; sketches are left out.
  uint64_t from_event = 0;
  // This one, and those behind it, are left out. They are not read where the log's index of steps
  // tells where they are. Then the log counts as closed if its end is the one the index binds.
  uint64_t until_event = kToEnd;
  const Bring* bring = nullptr;  // of a log that lies elsewhere; what is read of it is brought
};

// What of a folder of logs is read.
struct ReadFrom {
  std::set<std::string> only{};              // these files; none: all
  std::map<std::string, uint64_t> events{};  // ReadOptions::from_event by file
  std::map<std::string, uint64_t> until{};   // ReadOptions::until_event by file
  const Bring* bring = nullptr;              // ReadOptions::bring of each
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
bool read_run(const std::string& dir, Run& run, std::string& error, const ReadFrom& read = {});
// The logs of a folder, by rank and start as their names say; "": none, or `error` says why not.
std::vector<std::string> log_files(const std::string& dir, std::string& error);

std::string dump(const ProcessLog& log);

}  // namespace opguard
