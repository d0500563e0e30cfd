// Each question needs what the one before it brought. Where the stretches lie in an index its end
// tells; what is read of a log its index tells. For a log that is read whole no index is asked.
#include "record/bring_run.h"

#include <fstream>
#include <iterator>

#include "record/bring_log.h"
#include "record/format.h"
#include "record/segments.h"
#include "record/step_index.h"

namespace opguard {
namespace {

bool is_by_index(const ReadOptions& options) {
  return options.from_event > 0 || options.until_event != kToEnd;
}

bool is_cut(const std::string& path) {
  std::string header(format::kHeaderSize, '\0');
  std::ifstream file(path, std::ios::binary);
  return file.read(header.data(), static_cast<std::streamsize>(header.size())) &&
         tells_segments(header);
}

void add_pieces(std::vector<FilePiece>&& more, std::vector<FilePiece>& pieces) {
  pieces.insert(pieces.end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
}

}  // namespace

std::string bring_logs(const std::vector<std::pair<std::string, ReadOptions>>& logs,
                       const Bring& bring) {
  std::vector<FilePiece> openings;
  for (const auto& [path, options] : logs) {
    openings.push_back({path, 0, format::kHeaderSize});
    if (is_by_index(options)) add_pieces(StepIndex::opening(step_index_path(path)), openings);
  }
  if (std::string why = bring(openings); !why.empty()) return why;
  std::vector<FilePiece> tables;
  for (const auto& [path, options] : logs)
    if (StepIndex index; is_by_index(options) && index.open(step_index_path(path), &bring)) {
      add_pieces(index.stretch_blocks(), tables);
      for (const uint64_t event : {options.from_event, options.until_event})
        if (event != kToEnd) tables.push_back(index.block_of(index.near(event)));
    }
  if (std::string why = bring(tables); !why.empty()) return why;
  std::vector<FilePiece> pieces;
  for (const auto& [path, options] : logs) {
    const ReadStart start = is_by_index(options)
                                ? read_start(path, options.from_event, options.until_event, &bring)
                                : ReadStart{};
    add_pieces(is_cut(path) ? pieces_of_cut_log(path, segment_files(path), start)
                            : pieces_of_log(path, start),
               pieces);
  }
  return bring(pieces);
}

}  // namespace opguard
