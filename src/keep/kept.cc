#include "keep/kept.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace opguard::keep {
namespace {

constexpr char kPreload[] = "LD_PRELOAD";
// Of stack. An environment that needs more is passed on as it is.
constexpr size_t kMostBytes = 256 << 10;

// Copies: a program may write over the memory its environment lay in (setproctitle).
char** g_entries = nullptr;  // "NAME=value" of each that comes back where all are gone
size_t g_count = 0;
const char* g_libraries = nullptr;

// The value, where the entry is of that name.
const char* value_of(const char* entry, const char* name) {
  size_t length = std::strlen(name);
  return std::strncmp(entry, name, length) == 0 && entry[length] == '=' ? entry + length + 1
                                                                        : nullptr;
}

const char* find(const char* const* environment, const char* name) {
  for (; environment && *environment; ++environment)
    if (const char* value = value_of(*environment, name)) return value;
  return nullptr;
}

// Whether `word` of this length stands in the list; `separators` as strcspn takes them.
bool lists(const char* list, const char* separators, const char* word, size_t length) {
  for (const char* at = list ? list : ""; *at;) {
    size_t size = std::strcspn(at, separators);
    if (size == length && std::memcmp(at, word, length) == 0) return true;
    at += size + (at[size] != 0);
  }
  return false;
}

// Calls use(library, length) for each of ours that LD_PRELOAD's value does not name.
template <typename Use>
void each_missing(const char* preload, Use use) {
  for (const char* at = g_libraries; *at;) {
    size_t size = std::strcspn(at, ":");
    // The loader takes spaces and colons alike.
    if (size > 0 && !lists(preload, ": ", at, size)) use(at, size);
    at += size + (at[size] != 0);
  }
}

}  // namespace

void take(const char* const* environment) {
  const char *names = find(environment, kNames), *libraries = find(environment, kLibraries);
  if (g_libraries || !names || !libraries) return;
  size_t entries = 0;
  for (auto at = environment; *at; ++at) ++entries;
  auto** kept = static_cast<char**>(std::calloc(entries, sizeof(char*)));
  if (!kept) return;
  size_t count = 0;
  for (auto at = environment; *at; ++at) {
    size_t length = std::strcspn(*at, "=");
    if (lists(names, ",", *at, length) && (kept[count] = strdup(*at))) ++count;
  }
  g_entries = kept;
  g_count = count;
  g_libraries = strdup(libraries);
}

size_t missing_bytes(const char* const* environment) {
  if (!g_libraries) return 0;
  const char* preload = find(environment, kPreload);
  size_t bytes = 0;
  each_missing(preload, [&](const char*, size_t size) { bytes += size + 1; });
  const bool emptied = find(environment, kNames) == nullptr;
  if (bytes == 0 && !emptied) return 0;
  bytes += sizeof kPreload + 1 + (preload ? std::strlen(preload) : 0);
  size_t entries = 2;  // LD_PRELOAD and the end
  for (auto at = environment; at && *at; ++at) ++entries;
  if (emptied) entries += g_count;
  bytes += (entries + 1) * sizeof(char*);
  return bytes <= kMostBytes ? bytes : 0;
}

char* const* completed(char* const* environment, void* room) {
  const bool emptied = find(environment, kNames) == nullptr;
  const char* preload = find(environment, kPreload);
  auto** entry = static_cast<char**>(room);
  for (auto at = environment; at && *at; ++at)
    if (!value_of(*at, kPreload)) *entry++ = *at;
  for (size_t i = 0; emptied && i < g_count; ++i) {
    // What is there under that name is the program's own.
    size_t length = std::strcspn(g_entries[i], "=");
    bool there = false;
    for (auto at = environment; at && *at && !there; ++at)
      there = std::strncmp(*at, g_entries[i], length + 1) == 0;
    if (!there) *entry++ = g_entries[i];
  }
  char** last = entry++;
  *entry++ = nullptr;
  char* text = reinterpret_cast<char*>(entry);
  *last = text;
  auto append = [&](const char* from, size_t size) {
    std::memcpy(text, from, size);
    text += size;
  };
  append(kPreload, sizeof kPreload - 1);
  append("=", 1);
  char* begin = text;
  if (preload) append(preload, std::strlen(preload));
  each_missing(preload, [&](const char* library, size_t size) {
    if (text != begin) append(":", 1);
    append(library, size);
  });
  *text = 0;
  return static_cast<char* const*>(room);
}

void complete_own() {
  const size_t bytes = missing_bytes(environ);
  void* room = bytes ? std::malloc(bytes) : nullptr;
  if (!room) return;
  for (char* const* entry = completed(environ, room); *entry; ++entry) {
    char* equals = std::strchr(*entry, '=');
    char* name = equals ? strndup(*entry, equals - *entry) : nullptr;
    if (!name) continue;
    const char* now = std::getenv(name);
    if (!now || std::strcmp(now, equals + 1) != 0) setenv(name, equals + 1, 1);
    std::free(name);
  }
  std::free(room);
}

}  // namespace opguard::keep
