#include "report/parted_words.h"

#include "report/place_text.h"
#include "support/text.h"

namespace opguard {
namespace {

// "at model.py:41:12 softmax, forward of micro-batch 0"
std::string first_words(const ProcessLog& log, const Reason& reason) {
  const std::string& where = reason.names[0];
  const auto at = log.locations.find(where);
  const std::string place =
      at == log.locations.end()
          ? "in " + where
          : "at " + place_text(*log.provenance, at->second) + " " + at->second.callee;
  return place + ", " + reason.names[1] + " of micro-batch " + std::to_string(reason.numbers[2]);
}

}  // namespace

std::string parted_words(const Run& a, const Reason& reason) {
  const ProcessLog& log = a.processes[reason.events[0].process];
  const std::string where = reason.kind == ReasonKind::parted_event
                                ? "first " + first_words(log, reason)
                                : "in " + reason.names[0];
  return "there " + where + ", rank " + std::to_string(log.rank) + ": " +
         std::to_string(reason.numbers[0]) + " of " + counted(reason.numbers[1], "part") +
         " of the step " + (reason.numbers[0] == 1 ? "differs" : "differ");
}

}  // namespace opguard
