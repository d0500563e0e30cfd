// suspects/stand.h: one candidate on one side: where it stands in the sources, and what led there.
//
// Its statement and its function. On the trail to it lie the functions that called it, made what it
// reads, or gave a name that it reads its value.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "align/judge/pivot_view.h"
#include "suspects/programs.h"
#include "suspects/ran.h"
#include "suspects/trail.h"

namespace opguard {

class Stand {
 public:
  Stand(const Programs& programs, const Alignment& alignment, const Pivot& pivot, int side);

  const Ran& ran() const { return ran_; }
  // Did something of it run before the candidate?
  bool ran(const Hunk& hunk) const;
  Nearness nearness(const Hunk& hunk) const;
  // The ways from these names. What they pass nearby counts as trail from then on.
  TrailFound follow(const std::vector<NameUse>& uses, size_t depth, const std::vector<Hunk>& ran);
  // What may give a candidate of this kind its value.
  std::vector<NameUse> uses(PivotKind kind, const EventView& event) const;
  // What the conditions read under which it stands, and the calls that led to it.
  std::vector<NameUse> conditions() const;
  // Of an item of its scalars: the argument that carries it, or whatever has its name.
  std::vector<NameUse> uses(const std::string& item_name, std::optional<TrailStep>& argument) const;
  SourceText text_of(const TrailStep& step) const;

 private:
  // File and lines; file and scope.
  using Places = std::vector<std::pair<uint32_t, LineSpan>>;
  using Scopes = std::set<std::pair<uint32_t, uint32_t>>;

  std::vector<NameUse> uses_in(uint32_t file, uint32_t item) const;
  static bool reads_self(const EventView& event);
  std::optional<std::pair<uint32_t, uint32_t>> expression(const Location& at) const;
  // The statement an event stands in, and its function.
  void place(const EventRef& ref, Places& statements, Scopes& functions) const;
  void place(const Location& at, Places& statements, Scopes& functions) const;
  // The recorded operators around it, and those that made what it reads.
  void read_stack(const EventRef& ref);
  // Of the operators that ran right before it: other functions, into functions_.
  void read_before(const EventRef& ref);

  const Programs& programs_;
  const int side_;
  const Code& code_;
  const Run& run_;
  const Ran ran_;
  EventRef ref_;                                             // the candidate's
  std::optional<std::pair<uint32_t, uint32_t>> expression_;  // file and item
  Places statements_;
  Scopes functions_, trail_;
};

}  // namespace opguard
