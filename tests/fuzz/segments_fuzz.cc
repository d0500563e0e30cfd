// A log that is cut into segments. The input is the log's bytes and those of its segments behind
// it, each but the last with its length before it. Checksums are made good. But what the log says
// of a segment binds that one as it was.
#include "fuzz/fuzz.h"
#include "fuzz/good_log.h"
#include "record/record.h"
#include "record/segments.h"

using namespace opguard;

namespace {

constexpr size_t kMostSegments = 8;

// The next piece, taken off the front.
std::string_view take_piece(std::string_view& input) {
  size_t length = input.size();
  if (input.size() >= 4) {
    length = std::min<size_t>(format::load_u32(input.data()), input.size() - 4);
    input.remove_prefix(4);
  }
  const std::string_view piece = input.substr(0, length);
  input.remove_prefix(length);
  return piece;
}

void look(const std::string& path, bool salvage) {
  ProcessLog log;
  std::string error;
  if (!read_log(path, log, error, {.salvage = salvage})) {
    require(!error.empty(), "a refusal says why");
    return;
  }
  require_whole(log);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const InputFile log("rank0-1-1.log");
  std::string_view rest = text_of(data, size);
  log.write(with_checksums(take_piece(rest), format::kVersion));
  for (uint64_t number = 0; number < kMostSegments && !rest.empty(); ++number) {
    InputFile::write_to(segment_path(log.path(), number),
                        with_checksums(take_piece(rest), format::kVersion));
  }
  for (bool salvage : {false, true}) look(log.path(), salvage);
  return 0;
}
