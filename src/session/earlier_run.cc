// Only what must be there before the program starts is read: each log's index of steps, and the
// header of one log. The steps themselves are compared in the program (OPGUARD_AGAINST).
#include "session/earlier_run.h"

#include <vector>

#include "record/record.h"
#include "record/step_index.h"
#include "support/diagnostics.h"

namespace opguard {

llvm::Expected<EarlierRun> read_earlier_run(const std::string& dir, const Bring* bring) {
  std::string error;
  const std::vector<std::string> logs = log_files(dir, error);
  if (logs.empty()) return make_error(error);
  // Brought in one call, so in one round trip.
  std::vector<FilePiece> indexes;
  for (const std::string& log : logs)
    if (bring != nullptr)
      for (const FilePiece& piece : StepIndex::opening(step_index_path(log)))
        indexes.push_back({piece.path});
  if (!indexes.empty())
    if (error = (*bring)(indexes); !error.empty()) return make_error(error);
  for (const std::string& log : logs)
    if (StepIndex index; !index.open(step_index_path(log)))
      return make_error(index.why() +
                        "; it was recorded by an opguard that wrote no index of steps");
  // Of settings the first events of one log are enough.
  ProcessLog first;
  if (!read_log(logs[0], first, error, {.until_event = 1, .bring = bring}))
    return make_error(error);
  const auto mode = first.settings.find("mode");
  return EarlierRun{mode == first.settings.end() ? "" : mode->second};
}

}  // namespace opguard
