// matcher/search.h: where in the rest of a tree the boundaries can be that are not where they were.
//
//   lost                                     looked at
//   `rotate(q, cos)` of models/llama.py      functions of models/ that call a `rotate`
//                                            what is newly called in llama.py, wherever it stands
//                                            functions alike to one that is gone, in any file
//
// Every scope that match_sites() would compare with one of the plan's is kept, and no other: so the
// answer is that of the whole tree. Counterexample: of a file with none of the words that such a
// scope holds, nothing is read closer.
//
// The cost: in a tree of 2,860 files with one function renamed, 5.85 s of CPU instead of 4.3.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "matcher/match.h"
#include "matcher/taking_part.h"
#include "parser/outline.h"
#include "parser/site.h"
#include "plan/plan.h"

namespace opguard {

// Every scope that match_sites() would compare with one of the plan's. It is in a folder of a
// boundary that is not where it was, with an operator of its kind. Or it is newly called in the
// plan's files, or alike enough to a scope that is gone. Or it has a site that reads as a boundary
// did. A large tree has few.
class Search {
 public:
  // sites: of the plan's files; found: what match_sites() found among them.
  Search(const Plan& plan, const std::vector<Site>& sites, const MatchSet& found);

  // As if no boundary were where it was: what may ever be compared with one of the plan's.
  static Search everywhere(const Plan& plan);

  bool reads_as_boundary(const Site& site) const;
  bool nothing() const { return kinds_.empty(); }
  const Words& words() const { return words_; }
  // The scopes of a file that keep() may keep.
  ScopeNames choose(const std::vector<Outline>& outlines, std::string_view package,
                    std::string_view file) const;
  // The sites of one file that matter. Whole scopes stay or go: a scope is told by all of its
  // operators.
  std::vector<Site> keep(std::vector<Site> sites) const;

 private:
  using Kind = std::pair<Form, std::string>;          // operator_name
  using Place = std::pair<std::string, std::string>;  // package, folder
  struct Lost {
    struct Count {
      size_t sites = 0;
      std::optional<uint32_t> word;  // that stands in the text of each
    };
    size_t size = 0;
    std::map<Kind, Count> kinds;
  };

  bool is_near(std::string_view package, std::string_view file) const;
  bool is_called(std::string_view scope) const;
  bool may_be_lost(const Outline& outline) const;
  bool may_read_as(const Outline& outline) const;

  QuietKinds quiet_;
  std::set<Kind> kinds_;                           // of boundaries that are not where they were
  std::set<Place> near_;                           // the folders they were in
  std::set<std::string, std::less<>> called_;      // names of functions newly called
  std::vector<Lost> lost_;                         // scopes that are gone
  std::unordered_set<std::string> bodies_;         // how the boundaries read
  std::vector<std::vector<uint32_t>> body_words_;  // what such a text is made of
  bool file_gone_ = false;
  Words words_;
};

}  // namespace opguard
