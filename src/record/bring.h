// record/bring.h: files of a log that lie elsewhere, brought piece by piece as they are read.
//
//   x.log                        a file here, as large as the one there, and with nothing in it
//   bring({{"x.log", 0, 4096}})  its first 4 KiB are in it now
//
// Who reads says so before it does: StepIndex, read_start(), read_log(). So of equal steps nothing
// is brought but their index, and of that what halving asks for.
//
// Counterexample: logs of this machine. There is nothing to call, and no piece is asked for.
// The cost: a round trip a call, however many pieces it has. What was brought once is there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace opguard {

inline constexpr uint64_t kToEnd = ~uint64_t{0};

// Bytes of a file; of those behind its end there are none.
struct FilePiece {
  std::string path;
  uint64_t at = 0, bytes = kToEnd;
};

// "" or why not all of them are there.
using Bring = std::function<std::string(const std::vector<FilePiece>&)>;

}  // namespace opguard
