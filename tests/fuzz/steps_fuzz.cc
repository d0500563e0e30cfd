// An index of steps and the groups that it leads to: the index's length, its bytes, and those of
// the groups. Checksums are made good.
#include "fuzz/fuzz.h"
#include "record/crc.h"
#include "record/format.h"
#include "record/group_file.h"
#include "record/step_index.h"

using namespace opguard;

namespace {

constexpr size_t kHeader = 20, kEntry = 64;

void put_at(std::string& bytes, size_t at, uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

uint32_t sealed_by(uint32_t salt, const std::string& before, std::string_view bytes) {
  return crc32c(crc32c(salt, before.data(), before.size()), bytes.data(), bytes.size());
}

// The index and the groups begin alike.
bool begin_well(std::string& bytes, std::string_view magic, uint32_t version, uint32_t salt) {
  if (bytes.size() < kHeader) return false;
  bytes.replace(0, magic.size(), magic);
  put_at(bytes, 8, version);
  put_at(bytes, 12, salt);
  put_at(bytes, 16, crc32c(0, bytes.data(), 16));
  return true;
}

void seal_index(std::string& bytes, uint32_t salt) {
  if (!begin_well(bytes, std::string_view("opgstep\x1a", 8), 2, salt)) return;
  for (size_t i = 0; kHeader + (i + 1) * kEntry <= bytes.size(); ++i) {
    std::string before;
    format::put_u64(before, i);
    const size_t at = kHeader + i * kEntry;
    put_at(bytes, at + kEntry - 4,
           sealed_by(salt, before, std::string_view(bytes).substr(at, kEntry - 4)));
  }
}

void seal_groups(std::string& bytes, uint32_t salt) {
  if (!begin_well(bytes, std::string_view("opggrps\x1a", 8), 1, salt)) return;
  for (size_t at = kHeader; at + 8 <= bytes.size();) {
    const uint32_t length = format::load_u32(bytes.data() + at + 4);
    if (length > bytes.size() - at - 8) return;
    std::string before;
    format::put_u64(before, at);
    format::put_u32(before, length);
    put_at(bytes, at, sealed_by(salt, before, std::string_view(bytes).substr(at + 8, length)));
    at += 8 + length;
  }
}

void look(const std::string& index_path, const std::string& group_path) {
  StepIndex index;
  if (!index.open(index_path)) {
    require(!index.why().empty(), "a refusal says why");
    return;
  }
  const GroupFile groups(group_path, index.salt());
  for (uint64_t i = 0; i < std::min<uint64_t>(index.steps(), 1000); ++i) {
    const auto entry = index.at(i);
    if (!entry) continue;
    if (const auto kept = groups.at(entry->groups_at))
      require(kept->groups.size() <= 65536, "no more groups than bytes");
  }
  require(!index.at(index.steps()), "no step behind the last");
  if (const auto stretches = index.stretches())
    require(stretches->size() <= 4 * index.end()->stretch_entries, "no more than its entries hold");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const InputFile index("rank0-1-1.steps");
  const std::string group_path = index.dir() + "/rank0-1-1.groups";
  const std::string_view input = text_of(data, size);
  const size_t length =
      size < 4 ? 0 : std::min<size_t>(format::load_u32(input.data()), input.size() - 4);
  std::string steps(input.substr(std::min<size_t>(4, size), length));
  std::string parts(input.substr(std::min(size, 4 + length)));
  for (const bool good : {false, true}) {
    if (good) {
      const uint32_t salt = steps.size() < kHeader ? 0 : format::load_u32(steps.data() + 12);
      seal_index(steps, salt);
      seal_groups(parts, salt);
    }
    index.write(steps);
    InputFile::write_to(group_path, parts);
    look(index.path(), group_path);
  }
  return 0;
}
