// suspects/exchange.h: program b with some of its text as program a has it.
//
// What was read of two texts are hints: which hunk may be behind a verdict. Running says which is:
//
//   a  scaling=self.scaling,         b with this line as in a: every model value is run a's,
//   b  scaling=1.0,                  so this line is the cause
//
// A hunk cannot always be taken back alone: `y = _helper(x)` needs the definition that another one
// made, and a renamed variable all its uses. Such hunks are one group.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "suspects/suspects.h"

namespace opguard {

// Lines of a file of a and of b that stand for one another. A side without any stands before its
// `first`.
struct ExchangePart {
  const SourceFile* file[2] = {nullptr, nullptr};
  uint32_t first[2] = {0, 0}, count[2] = {0, 0};
  bool suspect = false;  // of one that ran
};

struct ExchangeGroup {
  double likelihood = 1;            // beside the other groups
  bool reworded = false;            // both texts compute with the same names, numbers, operators
  std::vector<ExchangePart> parts;  // the first to be named first
};

// Groups of those suspects whose text can be exchanged, the likeliest first, with the changes that
// they need. Lines that are statements of their own are parts of their own. Left out: files that
// one program alone has, and settings files. The texts must stay.
std::vector<ExchangeGroup> exchange_groups(const ProgramTexts& texts,
                                           const std::vector<Suspect>& suspects);

// One side's text of a part.
std::string text_of(const ExchangePart& part, int side);

// New text of b's files, by path, with these groups' parts as in a.
std::map<std::string, std::string> exchange_text(const std::vector<ExchangeGroup>& groups);

// Which group is the cause, by as few runs as may be: halves of what is left, by likelihood.
class ExchangeSearch {
 public:
  // likelihood: of each group.
  explicit ExchangeSearch(std::vector<double> likelihood);

  // Groups to run with text of a: indices, ascending. Empty: nothing is left to be asked.
  std::vector<size_t> next() const;
  // All that are left; how likely it is that the cause is among `asked`, if it is among these.
  const std::vector<size_t>& left() const { return left_; }
  double share(const std::vector<size_t>& asked) const;
  // What that run came to.
  void tell(const std::vector<size_t>& asked, bool healed);
  // The one group without which nothing is healed.
  std::optional<size_t> found() const;
  // Groups that healed it together, of which one is the cause; none yet: empty.
  std::vector<size_t> healed() const;
  // At most so many further runs tell it, if it is among them at all.
  uint32_t most_runs() const;

 private:
  std::vector<double> likelihood_;
  std::vector<size_t> left_;  // one of them is the cause
  bool healed_ = false;       // a run was healed with all that are left, and perhaps more
};

}  // namespace opguard
