// preflight/attribute.h: which site an instruction seen by the tracer belongs to.
//
//   trace    CALL            model.py 14:8 to 14:33    the call that ends at 14:33
//   trace    BINARY_OP       model.py 15:8 to 15:18    the operator from 15:8 to 15:18
//   trace    FOR_ITER        model.py 9:13 to 9:19     the loop whose iterable stands there
//
// CPython gives each instruction its exact expression from 3.11 on, but not as one would wish. A
// method call over several lines begins at its name; in 3.11 a `for` is its whole statement. So
// opcode_rules.h has a rule for each opcode, of what can be relied on: the end, the start, the
// operand.
//
// Counterexample: Python 3.10 has lines alone. There every site of the line that fits is given.
//
// The cost: two hash tables of a file's sites; a few opcodes look through all sites of the file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "parser/site.h"
#include "plan/trace.h"
#include "support/source.h"

namespace opguard {

struct Attribution {
  std::vector<uint32_t> sites;       // indices in the sites given; several where a line cannot tell
  std::string reason;                // why none: "del", "in a jit function"
  const SourceFile* file = nullptr;  // nullptr: not in the set
  bool operator==(const Attribution&) const = default;
};

// Answers for all uses of a trace; the sites and sources must outlive it.
class Attributor {
 public:
  Attributor(const SourceSet& sources, const std::vector<Site>& sites);
  // No sites and a reason: what ran there cannot be wrapped, or no file of the set holds it.
  Attribution attribute(const TracedUse& use) const;

 private:
  struct FileSites {
    const SourceFile* file = nullptr;
    std::vector<uint32_t> sites;
    std::unordered_multimap<uint32_t, uint32_t> by_end;      // Site::end -> site
    std::unordered_multimap<uint32_t, uint32_t> by_operand;  // Site::operand_end -> site
  };
  struct Span {
    uint32_t start, end;
  };
  using Found = std::vector<uint32_t>;
  Found find(const FileSites& in, const struct OpcodeRule& rule, Span span,
             const TracedUse& use) const;
  Found find_call(const FileSites& in, Span span) const;
  Found find_loop(const FileSites& in, Span span) const;
  Found find_exact(const FileSites& in, Span span, Form form, const char* callee) const;
  Found find_ending(const FileSites& in, Span span, Form form) const;
  Found find_augment(const FileSites& in, Span span) const;
  Found find_operand(const FileSites& in, Span span, Form form) const;
  Found find_beginning(const FileSites& in, Span span, Form form) const;
  Found find_truth(const FileSites& in, Span span) const;
  Found find_tested_together(const FileSites& in, Span span) const;
  Found find_context(const FileSites& in, Span span) const;
  Found find_unpacking(const FileSites& in, Span span) const;
  Found find_stars(const FileSites& in, Span span) const;
  Found find_innermost(const FileSites& in, Span span) const;
  Found find_tested(const FileSites& in, const TracedSpan& tested) const;
  Found only_nth(Found sites, const TracedUse& use) const;
  std::vector<uint32_t> by_line(const FileSites& in, const TracedUse& use,
                                const struct OpcodeRule* rule) const;

  const std::vector<Site>& sites_;
  std::map<std::string, FileSites> by_path_;
};

}  // namespace opguard
