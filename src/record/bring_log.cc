// In a log of one file a place is a byte. In a cut one it is a segment's number times 2^40 and a
// byte in it: there whole segments are brought. What is read to the end needs no last bytes of its
// own.
#include "record/bring_log.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "record/format.h"

namespace opguard {

std::vector<FilePiece> pieces_of_log(const std::string& path, const ReadStart& start) {
  if (start.at == 0) return {{path}};
  std::vector<FilePiece> pieces = {{path, 0, format::kHeaderSize}};
  for (const LogExtent& stretch : start.before) pieces.push_back({path, stretch.at, stretch.bytes});
  if (start.until == kToEnd) {
    pieces.push_back({path, start.at});
    return pieces;
  }
  pieces.push_back({path, start.at, start.until - start.at});
  std::error_code none;
  const uint64_t size = std::filesystem::file_size(path, none);
  if (!none) pieces.push_back({path, size - std::min(size, kEndBytes)});
  return pieces;
}

std::vector<FilePiece> pieces_of_cut_log(const std::string& path,
                                         const std::vector<SegmentFile>& segments,
                                         const ReadStart& start) {
  std::vector<FilePiece> pieces = {{path}};
  for (const SegmentFile& segment : segments)
    if (segment.number >= start.at >> kSegmentShift &&
        segment.number <= start.until >> kSegmentShift)
      pieces.push_back({segment.path});
  return pieces;
}

}  // namespace opguard
