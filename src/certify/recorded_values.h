// certify/recorded_values.h: what a repository has recorded of itself: opguard-certified.json, made
// to be committed.
//
//   "canaries": {"canaries": {"graph_breaks": 0, "operators": ["aten::add", ...], ...}}
//   "accepted": [{"check": "default-path", "place": "model.py:61", "values": "f3a1c07e...",
//                 "machine": "91aa...", "reason": "fused norm, see #412", "until": "2026-12-31"}]
//
// An accepted drift is one difference, with a reason, for a time. Where the machine is the one it
// was recorded on, the new run's values must be those that were accepted, bit for bit. On another
// the operator must be the same. Counterexample: a second change on the same branch. Its values
// are others, and it fails.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"

namespace opguard {

inline constexpr const char* kRecordedFile = "opguard-certified.json";
inline constexpr int kRecordedVersion = 1;

// Numbers of one run. Names are those of the file.
struct Canaries {
  std::map<std::string, uint64_t> numbers;  // "graph_breaks", "peak_bytes"
  // "operators", "kernels": sorted names.
  std::map<std::string, std::vector<std::string>> names;
  std::string reason;  // of the last --update
  bool operator==(const Canaries&) const = default;
};

struct AcceptedDrift {
  std::string check;
  std::string place;    // of the pivot: "model.py: torch.rsqrt"; no line, which an edit would move
  std::string values;   // digest of the new run's model values
  std::string machine;  // digest of what such values depend on beside the program
  std::string reason;
  std::string until;  // "2026-12-31": the last day it counts
  bool operator==(const AcceptedDrift&) const = default;
};

struct RecordedValues {
  std::map<std::string, Canaries> canaries;  // by check
  std::vector<AcceptedDrift> accepted;
  bool operator==(const RecordedValues&) const = default;
};

// Empty where there is no such file. Error: what is wrong in it.
llvm::Expected<RecordedValues> read_recorded(const std::string& path);
llvm::Error write_recorded(const RecordedValues& values, const std::string& path);

// Numbers may grow by this share before it counts: memory depends on the allocator and the cores.
inline constexpr double kMemorySlack = 0.10;

// What is worse or other than recorded, a sentence each: "graph_breaks: 2, recorded 0". Fewer
// compilations, breaks or bytes are no fault. Where only one side knows a value it is not compared.
std::vector<std::string> compare_canaries(const Canaries& recorded, const Canaries& now);

enum class Drift : uint8_t { accepted, expired, other };

struct DriftAnswer {
  Drift drift = Drift::other;
  std::optional<AcceptedDrift> entry;  // of accepted and expired
};

// The drift `seen` (check, place, values, machine) among those accepted. today: "2026-11-24".
DriftAnswer find_drift(const std::vector<AcceptedDrift>& accepted, const AcceptedDrift& seen,
                       const std::string& today);

// The same by values alone, on the machine where they were accepted: before anything is proven.
//
// now: a day, or a time that begins with it.
bool is_accepted_here(const std::vector<AcceptedDrift>& accepted, const AcceptedDrift& seen,
                      const std::string& now);

}  // namespace opguard
