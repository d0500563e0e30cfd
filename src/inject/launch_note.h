// inject/launch_note.h: one call that put work on a device, as the interception notes it.
#pragma once

#include <cstdint>

namespace opguard::launches {

// Calls noted on this thread so far, by any layer.
uint64_t noted();

int64_t now_ns();

struct Call {
  uint32_t kind;  // opguard_activity_kind
  const char* name;
  void* stream;
  int64_t start_ns, end_ns;  // the host's, around the call
};

// Into activities(), below this thread's innermost id.
void note(const Call& call);

}  // namespace opguard::launches
