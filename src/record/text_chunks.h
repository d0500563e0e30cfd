// record/text_chunks.h: the chunks of a log that say what its events and observations refer to:
// its process, settings, strings, metas, locations and schemas.
//
//   take(a chunk of strings that begins with 12)    log.strings has 12: they become 13, 14, ...
//   the same, log.strings has 10                    refused, "strings before it are missing"
//
// Whoever reads a whole log (log_reader.h) and who follows one that grows (log_tail.h) take them by
// this. Counterexample: a chunk of events needs what the reader alone knows, of holes and slots.
//
// The cost: what is said is kept, for as long as the log is.
#pragma once

#include <cstdint>
#include <string>

#include "record/chunk_finder.h"
#include "record/record.h"

namespace opguard {

class TextChunks {
 public:
  explicit TextChunks(ProcessLog& log) : log_(log) {}

  static bool has(format::Chunk type);
  // Of a type that it has. "" or what is wrong with it; then nothing of it is taken.
  std::string take(const RawChunk& chunk);
  // So many bytes were passed over as damaged: entries in them may be missing.
  void passed_over(uint64_t bytes) { passed_over_ += bytes; }
  bool started() const { return started_; }  // the chunk of process was there

 private:
  std::string take_process(format::Cursor& in);
  std::string take_settings(format::Cursor& in, uint32_t count);
  std::string take_strings(format::Cursor& in, uint32_t count);
  std::string take_metas(format::Cursor& in, uint32_t count);
  std::string take_locations(format::Cursor& in, uint32_t count);
  std::string take_schemas(format::Cursor& in, uint32_t count);
  template <typename T>
  bool skip_to(uint64_t first, std::vector<T>& entries, const T& missing = {}) const;
  void correct_rank();

  ProcessLog& log_;
  bool started_ = false;
  uint64_t passed_over_ = 0;
};

}  // namespace opguard
