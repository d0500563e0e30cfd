#include "align/pivot_view.h"
#include "confirm/experiment.h"
#include "tensor/selection.h"

namespace opguard {

std::string tensor_name(const ProcessLog& log, const Slot& slot) {
  static constexpr const char* kKinds[] = {"in", "out", "written"};
  return std::string(kKinds[static_cast<size_t>(slot.kind)]) + "/" + log.text(slot.name);
}

std::string selection_of(const ProcessLog& log, const Event& event, const std::string& slot,
                         std::string& refused) {
  const std::string& boundary = log.text(event.boundary);
  const std::string& node = log.text(event.node);
  std::string text = boundary + "@" + std::to_string(event.occurrence);
  if (!slot.empty()) text += ":" + slot;
  text += std::string(",kind=") + kind_name(event.kind) + ",phase=" + phase_name(event.phase);
  if (!node.empty()) text += ",node=" + node;
  text += ",rank=" + std::to_string(log.rank);
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
  refused = "its name cannot be written as a selection";
  return "";
}

}  // namespace opguard
