// record/reader.cc: a log file -> ProcessLog.
//
// 1. The header tells whether the log is cut into segments; those are mapped with it.
// 2. Where a part is wanted, the index of steps tells where to begin and to stop.
// 3. What is read is brought, where the log lies elsewhere, and read.
// 4. If the index turns out to be another log's, all is read once more, from the front.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "record/bring_log.h"
#include "record/file_map.h"
#include "record/log_reader.h"
#include "record/record.h"

namespace opguard {

std::string_view ProcessLog::callee(const Event& event) const {
  const auto found = locations.find(text(event.boundary));
  return found == locations.end() ? std::string_view() : found->second.callee;
}

const std::string& ProcessLog::text(uint32_t string) const {
  static const std::string kEmpty;
  return string < strings.size() ? strings[string] : kEmpty;
}

uint64_t Run::records() const {
  uint64_t n = 0;
  for (const ProcessLog& p : processes) n += p.slots.size();
  return n;
}

bool Run::cut_short() const {
  return std::any_of(processes.begin(), processes.end(),
                     [](const ProcessLog& log) { return log.cut_short(); });
}

bool parse_log(std::string_view bytes, ProcessLog& log, std::string& error,
               const ReadOptions& options) {
  std::string path = std::move(log.path);
  log = {};
  log.path = std::move(path);
  error = LogReader(bytes, options, log).run();
  return error.empty();
}

bool read_log(const std::string& path, ProcessLog& log, std::string& error,
              const ReadOptions& options) {
  auto bring = [&](const std::vector<FilePiece>& pieces) {
    return options.bring == nullptr ? std::string() : (*options.bring)(pieces);
  };
  auto map = std::make_shared<FileMap>();
  std::string unread = bring({{path, 0, format::kHeaderSize}});
  if (unread.empty()) unread = map->open(path);
  const bool cut = unread.empty() && tells_segments(map->bytes());
  std::vector<SegmentFile> files;
  if (cut) {
    files = segment_files(path);
    std::vector<std::string> paths = {path};
    for (const SegmentFile& file : files) paths.push_back(file.path);
    map = std::make_shared<FileMap>();
    unread = map->open_all(paths);
  }
  if (!unread.empty()) {
    error = path + ": cannot be read: " + unread;
    return false;
  }
  std::vector<SegmentBytes> segments;
  for (size_t i = 0; i < files.size(); ++i)
    segments.push_back({files[i].number, std::filesystem::path(files[i].path).filename().string(),
                        map->bytes(i + 1)});
  auto read = [&](ReadStart start) {
    error = bring(cut ? pieces_of_cut_log(path, files, start) : pieces_of_log(path, start));
    if (!error.empty()) return;
    log = {};
    log.path = path;
    log.slots.set_file(map);
    log.sketches.set_file(map);
    log.observations.set_file(map);
    error = LogReader(map->bytes(), options, log, std::move(start), segments).run();
  };
  ReadStart start;
  if (options.from_event > 0 || options.until_event != kToEnd)
    start = read_start(path, options.from_event, options.until_event, options.bring);
  const bool by_index = start.at > 0;
  read(std::move(start));
  // Perhaps the index is another log's. The log itself tells.
  if (by_index && (!error.empty() || !log.closed)) read({});
  if (error.empty()) return true;
  error = path + ": " + error;
  return false;
}

}  // namespace opguard
