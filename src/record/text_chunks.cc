// A chunk is taken whole or not at all. Strings, metas and schemas are added as they come, and cut
// off again where the chunk turns out to be wrong. Settings and locations wait until it is read.
//
// Where damage was passed over, numbers may be missing:
//
//   12 strings, 1000 bytes passed over, a chunk from 90 on      78 empty ones, then its own
//   12 strings, 1000 bytes passed over, a chunk from 5000 on    refused
#include "record/text_chunks.h"

#include <charconv>
#include <map>
#include <utility>

#include "record/limits.h"

namespace opguard {

using namespace format;

bool TextChunks::has(Chunk type) {
  switch (type) {
    case Chunk::process:
    case Chunk::settings:
    case Chunk::strings:
    case Chunk::metas:
    case Chunk::locations:
    case Chunk::schemas:
      return true;
    default:
      return false;
  }
}

std::string TextChunks::take(const RawChunk& chunk) {
  Cursor in(chunk.payload);
  const size_t strings = log_.strings.size(), metas = log_.metas.size();
  const size_t schemas = log_.observations.schemas().size();
  std::string wrong;
  switch (chunk.type) {
    case Chunk::process:
      wrong = take_process(in);
      break;
    case Chunk::settings:
      wrong = take_settings(in, chunk.count);
      break;
    case Chunk::strings:
      wrong = take_strings(in, chunk.count);
      break;
    case Chunk::metas:
      wrong = take_metas(in, chunk.count);
      break;
    case Chunk::locations:
      wrong = take_locations(in, chunk.count);
      break;
    default:
      wrong = take_schemas(in, chunk.count);
  }
  if (wrong.empty() && (!in.ok() || in.left() != 0)) wrong = "its length does not fit its content";
  if (wrong.empty()) return "";
  log_.strings.resize(strings);
  log_.metas.resize(metas);
  log_.observations.edit_schemas().resize(schemas);
  return wrong;
}

std::string TextChunks::take_process(Cursor& in) {
  if (started_) return "there is one already";
  log_.rank = static_cast<int32_t>(in.signed_varint());
  log_.world = static_cast<int32_t>(in.signed_varint());
  log_.pid = in.signed_varint();
  log_.start_ns = in.signed_varint();
  started_ = true;
  return "";
}

// A key that is told again with another value counts as set again: a seed that was changed.
std::string TextChunks::take_settings(Cursor& in, uint32_t count) {
  std::map<std::string, std::string> settings;
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    std::string key = in.text();
    settings[key] = in.text();
  }
  if (in.ok() && in.left() == 0)
    for (auto& [key, value] : settings) {
      const auto [now, fresh] = log_.settings.try_emplace(key, value);
      if (fresh || now->second == value) continue;
      now->second = std::move(value);
      log_.set_again.insert(key);
    }
  correct_rank();
  return "";
}

// Programs that start their ranks by themselves set no variables. What the process group said is
// told by a setting.
void TextChunks::correct_rank() {
  for (const auto& [key, value] :
       {std::pair("rank", &log_.rank), std::pair("world", &log_.world)}) {
    const auto said = log_.settings.find(key);
    if (said == log_.settings.end()) return;
    int32_t number = -1;
    const char* end = said->second.data() + said->second.size();
    const auto [at, wrong] = std::from_chars(said->second.data(), end, number);
    if (wrong == std::errc() && at == end && number >= 0) *value = number;
  }
}

// Each missing entry took a byte at least: a false number cannot make us allocate.
template <typename T>
bool TextChunks::skip_to(uint64_t first, std::vector<T>& entries, const T& missing) const {
  if (first < entries.size() || first - entries.size() > passed_over_) return false;
  entries.resize(first, missing);
  return true;
}

std::string TextChunks::take_strings(Cursor& in, uint32_t count) {
  const uint64_t first = in.varint();
  if (!skip_to(first, log_.strings)) return "strings before it are missing";
  for (uint32_t i = 0; i < count && in.ok(); ++i) log_.strings.push_back(kept_text(in.text()));
  return "";
}

std::string TextChunks::take_metas(Cursor& in, uint32_t count) {
  const uint64_t first = in.varint();
  if (!skip_to(first, log_.metas)) return "metas before it are missing";
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    Meta meta;
    meta.dtype = in.text();
    meta.device = in.text();
    const uint64_t dims = in.varint();
    if (dims > in.left()) return "a shape is longer than its chunk";
    if (dims > kMostDimensions)
      return "a shape of more than " + std::to_string(kMostDimensions) + " dimensions";
    meta.shape.reserve(dims);
    for (uint64_t d = 0; d < dims; ++d) meta.shape.push_back(in.signed_varint());
    log_.metas.push_back(std::move(meta));
  }
  return "";
}

std::string TextChunks::take_locations(Cursor& in, uint32_t count) {
  std::map<std::string, Location> locations;
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    std::string boundary = kept_text(in.text());
    Location at;
    for (std::string* s : {&at.package, &at.file, &at.path, &at.text, &at.callee, &at.function})
      *s = kept_text(in.text(), kLongPlace);
    for (uint32_t* n : {&at.line, &at.column, &at.end_line, &at.end_column}) *n = in.varint32();
    locations[boundary] = std::move(at);
  }
  if (in.ok() && in.left() == 0)
    for (auto& [boundary, at] : locations) log_.locations[boundary] = std::move(at);
  return "";
}

// A schema's strings come before it, so each must be there.
std::string TextChunks::take_schemas(Cursor& in, uint32_t count) {
  std::vector<ObservationSchema>& schemas = log_.observations.edit_schemas();
  if (!skip_to(in.varint(), schemas, {kNone, {}})) return "schemas before it are missing";
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    ObservationSchema schema;
    schema.kind = in.varint32();
    const uint64_t fields = in.varint();
    if (fields > kMostFields)
      return "a schema of more than " + std::to_string(kMostFields) + " fields";
    bool known = schema.kind < log_.strings.size();
    for (uint64_t f = 0; f < fields; ++f) {
      schema.fields.push_back(in.varint32());
      known &= schema.fields.back() < log_.strings.size();
    }
    if (!known) return "it names a string that is not there";
    schemas.push_back(std::move(schema));
  }
  return "";
}

}  // namespace opguard
