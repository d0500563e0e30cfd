// An event of a log as the runtime is told it:
//
//   model.softmax:q7k2@3:out/out0,kind=op,phase=forward,rank=0
//
// What is written is read back, and must mean the same event. Counterexample: a slot whose name
// holds ",phase=". Nothing is put there, rather than somewhere else.
#include "align/judge/pivot_view.h"
#include "confirm/experiment.h"
#include "record/log_words.h"
#include "tensor/selection.h"

namespace opguard {

std::string tensor_name(const ProcessLog& log, const Slot& slot) {
  return std::string(kSlotKindNames[static_cast<size_t>(slot.kind)]) + "/" + log.text(slot.name);
}

// Processes lie in the order of rank and start.
uint32_t ordinal_of(const Run& run, int32_t process) {
  uint32_t n = 0;
  for (int32_t p = 0; p < process; ++p) n += run.processes[p].rank == run.processes[process].rank;
  return n;
}

std::string selection_of(const Run& run, const EventRef& ref, const std::string& slot) {
  const ProcessLog& log = run.processes[ref.process];
  const Event event = log.events[ref.event];
  const std::string& boundary = log.text(event.boundary);
  const std::string& node = log.text(event.node);
  std::string text = boundary + "@" + std::to_string(event.occurrence);
  if (!slot.empty()) text += ":" + slot;
  text += std::string(",kind=") + kind_name(event.kind) + ",phase=" + phase_name(event.phase);
  if (!node.empty()) text += ",node=" + node;
  text += ",rank=" + std::to_string(log.rank);
  size_t of_rank = 0;
  for (const ProcessLog& other : run.processes) of_rank += other.rank == log.rank;
  if (of_rank > 1) text += ",process=" + std::to_string(ordinal_of(run, ref.process));
  // Read back: names come from the program, and may hold what separates the parts of a selection.
  Transplant read;
  std::string error;
  const bool whole = parse_transplant(text + (slot.empty() ? ":out" : "") + "=f#n", read, error);
  if (slot.empty()) {
    Selection selection;
    if (parse_selection(text, selection, error) && selection.boundary == boundary &&
        selection.occurrence == event.occurrence && selection.node == node)
      return text;
  } else if (whole && read.selection.boundary == boundary && read.selection.slot == slot &&
             read.selection.occurrence == event.occurrence && read.selection.node == node &&
             read.file == "f") {
    return text;
  }
  return "";
}

}  // namespace opguard
