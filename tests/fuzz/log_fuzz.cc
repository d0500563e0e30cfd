// A log of any bytes, as it is and with good checksums.
#include "fuzz/fuzz.h"
#include "fuzz/good_log.h"
#include "record/record.h"

using namespace opguard;

namespace {

void look(std::string_view bytes, bool salvage) {
  ProcessLog log;
  std::string error;
  if (!parse_log(bytes, log, error, {.salvage = salvage})) {
    require(!error.empty(), "a refusal says why");
    return;
  }
  require_whole(log);
  for (uint64_t i = 0; i < log.slots.size(); ++i) {
    const Slot slot = log.slots[i];
    require(slot.name < log.strings.size() && slot.meta < log.metas.size(),
            "slots refer to entries");
  }
  uint64_t rows = 0;
  ObservationCursor cursor(log.observations);
  for (Observation row; cursor.next(row); ++rows) {
    require(row.schema < log.observations.schemas().size(), "rows have a schema");
    require(row.event <= log.events.size(), "rows are in the log");
    for (const ObservedValue& value : row.values)
      require(value.kind != ObservedKind::text || value.text < log.strings.size(),
              "texts are strings");
    for (size_t i = 0; i < row.starts.size(); ++i)
      require(!row.field(i).empty(), "a field has a value");
  }
  require(rows == log.observations.size(), "all rows are there");
  dump(log);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = text_of(data, size);
  const bool cut = input.size() > 8 && input[8] == static_cast<char>(format::kVersion);
  const std::string whole = with_checksums(input, cut ? format::kVersion : format::kOneFileVersion);
  for (bool salvage : {false, true}) {
    look(input, salvage);
    look(whole, salvage);
  }
  return 0;
}
