// align/judge/heuristics.h: what the judgement argues where it cannot know, each by its name.
//
// Facts need no name: who left these bytes, which slot is whose counterpart. A heuristic takes one
// of two readings that the logs allow. `opguard align --without NAME` judges without it, so that
// bench/ablation.py can print what each is worth; a verdict lists those that shaped its pivot.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace opguard {

enum class Heuristic : uint8_t {
  known_by_name,
  zeros_are_known,
  repeated_value,
  listed_elements,
  read_unseen,
  shared_input,
  inherited,
  echo,
  behind_hole,
  one_sided_write,
  backward_argument,
  graph_cut,
};

struct HeuristicText {
  Heuristic heuristic;
  std::string_view name;  // for JSON, --explain and --without
  std::string_view says;  // one sentence
};

inline constexpr std::array kHeuristics = {
    HeuristicText{Heuristic::known_by_name, "known-by-name",
                  "a value without a counterpart is the other run's if that holds it anywhere"},
    HeuristicText{Heuristic::zeros_are_known, "zeros-are-known",
                  "zeros without a counterpart are in every run"},
    HeuristicText{Heuristic::repeated_value, "repeated-value",
                  "a value repeated over a dimension of size 1 is the value"},
    HeuristicText{Heuristic::listed_elements, "listed-elements",
                  "a buffer, or the shares of all ranks together, is the other run's if that "
                  "holds its elements as a list"},
    HeuristicText{
        Heuristic::read_unseen, "read-unseen",
        "an operator that leaves a value made before it, and read it nowhere, had it from "
        "there"},
    HeuristicText{
        Heuristic::shared_input, "shared-input",
        "of two stretches in one place, those operators are named that read the same value"},
    HeuristicText{
        Heuristic::inherited, "inherited",
        "a stretch of one run alone that reads a difference comes behind where that began"},
    HeuristicText{
        Heuristic::echo, "echo",
        "an operator whose partner reads what only the other run holds comes behind where "
        "that began"},
    HeuristicText{Heuristic::behind_hole, "behind-hole",
                  "a differing value that nobody reads, right before an input that nobody made, is "
                  "where it came from"},
    HeuristicText{Heuristic::one_sided_write, "one-sided-write",
                  "a tensor that one run alone wrote last is that writer's doing"},
    HeuristicText{Heuristic::backward_argument, "backward-argument",
                  "a backward that differs stands for the other argument its forward was given"},
    HeuristicText{Heuristic::graph_cut, "graph-cut",
                  "a backward of one run alone stands for the operator that left the graph"},
};

// A set of them.
class Heuristics {
 public:
  bool has(Heuristic heuristic) const { return bits_ >> unsigned(heuristic) & 1; }
  void add(Heuristic heuristic) { bits_ |= 1u << unsigned(heuristic); }
  void add(const Heuristics& others) { bits_ |= others.bits_; }
  bool empty() const { return bits_ == 0; }
  bool operator==(const Heuristics&) const = default;

 private:
  uint32_t bits_ = 0;
};

constexpr std::optional<Heuristic> heuristic_named(std::string_view name) {
  for (const HeuristicText& text : kHeuristics)
    if (text.name == name) return text.heuristic;
  return {};
}

}  // namespace opguard
