// runtime/watch/watch_list.h: what --capture, --transplant and --drill asked of this process, and
// what became of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/host/py.h"
#include "runtime/watch/transplant.h"
#include "tensor/selection.h"

namespace opguard {

struct WantedCapture {
  Selection selection;
  uint64_t events = 0;
};

struct WantedDrill {
  Selection selection;
  bool done = false;
};

struct WantedTransplant {
  Transplant transplant;
  TransplantValue value;
  bool loaded = false, done = false;
  bool same = false;    // done: the tensor held that value already
  std::string held;     // og1 of what it held, where it could be read
  std::string refused;  // why
};

// Selections by the boundary they name: an event meets only its own.
using ByBoundary = std::map<std::string, std::vector<size_t>, std::less<>>;

// All under the GIL, as the recorder is. Never destroyed: hooks may fire at the interpreter's end.
struct WatchList {
  std::string dir;
  int32_t rank = 0;
  std::optional<uint32_t> process;  // which of this rank's, in the order they began; none: a child
  std::vector<WantedCapture> captures;
  std::vector<WantedTransplant> transplants;
  std::vector<WantedDrill> drills;
  ByBoundary captures_at, transplants_at;
  std::vector<size_t> captures_anywhere;  // whose boundary cannot be told from their slot
  PyObject* driller = nullptr;
  uint64_t files = 0, tensors = 0, failed = 0;
  std::string failure;  // the first one
};

WatchList& watch_list();

// Told on stderr; of captures the first alone, the others are counted.
void fail_capture(const std::string& why);
void refuse(WantedTransplant& planned, const std::string& why);

}  // namespace opguard
