// record/bring_log.h: which pieces of a log's files are read from some event on.
//
//   one file, start at byte 1,980,112,044    its header, 12 stretches of texts, and from there on
//   cut, start in segment 41                 the log's own file, and segments from 41 on
//   until byte 1,990,000,000                 up to there, and the last bytes, with the log's end
//   no start                                 all of it
//
// For src/record alone; others give ReadOptions::bring (record.h).
#pragma once

#include <string>
#include <vector>

#include "record/bring.h"
#include "record/read_start.h"
#include "record/segments.h"

namespace opguard {

// The last bytes of a log's file: its end is in them.
inline constexpr uint64_t kEndBytes = 256;

std::vector<FilePiece> pieces_of_log(const std::string& path, const ReadStart& start);
// segments: those that there are.
std::vector<FilePiece> pieces_of_cut_log(const std::string& path,
                                         const std::vector<SegmentFile>& segments,
                                         const ReadStart& start);

}  // namespace opguard
