// preflight/attribute.h: which site an instruction seen by the tracer belongs to.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "parser/site.h"
#include "preflight/trace.h"
#include "support/source.h"

namespace opguard {

struct Attribution {
  std::vector<uint32_t> sites;       // indices in the sites given; several where a line cannot tell
  std::string reason;                // why none: "attribute read", "with item"
  const SourceFile* file = nullptr;  // nullptr: not in the set
  bool operator==(const Attribution&) const = default;
};

// Answers for all uses of a trace; the sites and sources must outlive it.
class Attributor {
 public:
  Attributor(const SourceSet& sources, const std::vector<Site>& sites);
  Attribution attribute(const TracedUse& use) const;

 private:
  struct FileSites {
    const SourceFile* file = nullptr;
    std::vector<uint32_t> sites;
  };
  struct Span {
    uint32_t start, end;
  };
  // -1: no such site.
  int64_t find(const FileSites& in, const struct OpcodeRule& rule, Span span) const;
  int64_t find_call(const FileSites& in, Span span) const;
  int64_t find_loop(const FileSites& in, Span span) const;
  int64_t find_condition(const FileSites& in, Span span) const;
  int64_t find_exact(const FileSites& in, Span span, Form form, const char* callee) const;
  int64_t find_innermost(const FileSites& in, Span span) const;
  std::vector<uint32_t> by_line(const FileSites& in, const TracedUse& use,
                                const struct OpcodeRule* rule) const;

  const std::vector<Site>& sites_;
  std::map<std::string, FileSites> by_path_;
};

}  // namespace opguard
