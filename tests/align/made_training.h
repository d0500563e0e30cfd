// made_training.h: logs of small training runs that are made up from a seed, and of the same runs
// with one thing otherwise.
//
// Values flow as in a real run: what an operator leaves is a mix of what it reads, gradients of the
// loss, parameters of gradients. So a change goes where it would go.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "record/writer.h"

namespace opguard::test {

// What is otherwise in one of two runs.
enum class Change : uint8_t {
  none,
  value,        // an operator leaves another value, once
  scalar,       // it has another argument from a step on
  missing,      // it is not there in a step
  extra,        // an operator more, which nobody reads
  input,        // a batch of data is another one
  generator,    // the state that an operator draws from is another one from a step on
  overwritten,  // a table made before the first step is written to, unseen, between two operators
  unused,       // an operator that reaches no value of the model leaves another one
  order,        // nothing but the order of two operators, in every step
  shorter,      // it ends some steps early
  outer,        // what the call around all steps gives back
  parameter,    // a parameter is written to, unseen, between two steps
  unseeded,     // a generator began with another state, and nobody draws from it
  drawn,        // it did so, and somebody draws, for no value of the model
  stale,        // an operator reads, in new memory, what was read in the first step
  several,      // two of these, at different steps
  count
};

struct MadeTraining {
  uint64_t seed = 0;
  Change change = Change::none;
  bool second = false;   // the run that has the change
  bool garbage = false;  // it reads what torch.empty left
  bool partly = false;   // some operators are not recorded
  bool loops = false;    // its layers, eight more, run the same sites

  uint32_t steps = 0, ranks = 1;
  SegmentLimits segments{};

  // Writes a log a rank into `dir`.
  void write(const std::string& dir) const;
};

namespace made {

inline uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return (x ^ (x >> 31)) | 1;
}

class Rank {
 public:
  Rank(const MadeTraining& made, const std::string& dir, uint32_t rank)
      : made_(made), rank_(rank), log_(limits(made.segments)), chance_(made.seed) {
    log_.open(dir, int32_t(rank), int32_t(made.ranks), 100 + rank, 5);
    log_.set({{"rank", std::to_string(rank)},
              {"world", std::to_string(made.ranks)},
              {"group.0-" + std::to_string(made.ranks - 1), "data"}});
    layers_ = 2 + chance_() % 4 + (made.loops ? 8 : 0);
    operators_ = 2 + chance_() % 5;
    steps_ = made.steps;
    at_step_ = 1 + chance_() % (steps_ - 1);
    at_step_2_ = at_step_ + chance_() % (steps_ - at_step_);
    at_layer_ = chance_() % layers_;
    at_operator_ = chance_() % operators_;
    kinds_[0] = made.change;
    if (made.change == Change::several)
      for (Change& kind : kinds_) kind = Change(1 + chance_() % (uint64_t(Change::several) - 1));
    else
      kinds_[1] = Change::none;
    for (uint32_t i = 0; i < layers_; ++i) parameters_.push_back({mix(made.seed + i), i + 1});
    noise_ = made.garbage ? mix(made.seed * 2 + made.second) : 0;
    hit_rank_ = chance_() % made.ranks;
    wraps_ = chance_() % 2 != 0 || made.change == Change::outer;
    steps_of_table_ = chance_() % 4;
  }

  void begin() {
    begin_ = log_.events();
    table_ = {mix(made_.seed + 99), 50};
    operate("data.table:tab0", {}, table_);
  }
  // How many steps it makes.
  uint32_t steps() const { return is(Change::shorter, ~0u) ? at_step_ : steps_; }
  // Its gradient.
  uint64_t forward_and_backward(uint32_t step) {
    step_ = step;
    return forward_and_backward();
  }
  // reduced: what all ranks' gradients give.
  void update(uint64_t reduced) {
    if (made_.ranks > 1) {
      Event event = made_event("train.all_reduce:ar0", EventKind::op, Phase::backward);
      event.flags = kCollective;
      event.group = log_.string("0-" + std::to_string(made_.ranks - 1));
      event.sequence = step_ + 1;
      add(event,
          {slot(SlotKind::in, fresh(gradient_), 0), slot(SlotKind::written, fresh(reduced), 0)});
    }
    gradient_ = reduced;
    optimize();
  }
  void end() {
    ++step_;
    if (wraps_) {
      Event event = made_event("train.fit:outer");
      event.step = 0;
      event.begin = begin_;
      add(event, {slot(SlotKind::out, {last_ ^ (is(Change::outer, ~0u) ? 8 : 0), 0}, 0)});
    }
    log_.close();
  }

 private:
  struct Value {
    uint64_t bits = 0;
    uint32_t storage = 0;
    uint32_t version = 1;
  };

  static WriterLimits limits(const SegmentLimits& segments) {
    WriterLimits limits;
    limits.segments = segments;
    limits.thread = false;
    limits.chunk_events = 64;  // so that steps begin inside of chunks and at their edges
    return limits;
  }

  // Whether this run and rank have the change in this step; ~0u: in any.
  bool is(Change change, uint32_t step) const {
    if (!made_.second || rank_ != hit_rank_) return false;
    for (int i : {0, 1})
      if (kinds_[i] == change && (step == ~0u || step == (i == 0 ? at_step_ : at_step_2_)))
        return true;
    return false;
  }
  bool is_from(Change change) const {
    if (!made_.second || rank_ != hit_rank_) return false;
    for (int i : {0, 1})
      if (kinds_[i] == change && step_ >= (i == 0 ? at_step_ : at_step_2_)) return true;
    return false;
  }
  bool is_here(uint32_t layer, uint32_t k) const { return layer == at_layer_ && k == at_operator_; }

  Slot slot(SlotKind kind, const Value& value, uint16_t index, SlotFlags flags = 0,
            const char* name = nullptr) {
    Slot s;
    s.kind = kind;
    s.index = index;
    s.flags = flags;
    const std::string place = (kind == SlotKind::in ? "arg" : "out") + std::to_string(index);
    s.name = log_.string(name ? name : place);
    s.meta = log_.meta({"float32", "cpu", {4, int64_t(1 + value.storage % 3)}});
    s.version = value.version;
    s.storage = value.storage;
    s.address = uint64_t{value.storage} << 20;
    s.size_bytes = 16 * (1 + value.storage % 3);
    s.value = {value.bits, mix(value.bits)};
    s.flat = mix(value.bits + 1);
    s.has_digest = true;
    s.digest = mix(value.bits + 2);
    return s;
  }

  Event made_event(const std::string& boundary, EventKind kind = EventKind::op,
                   Phase phase = Phase::forward) {
    Event event;
    event.boundary = log_.string(boundary);
    event.kind = kind;
    event.phase = phase;
    event.step = step_;
    event.begin = log_.events();
    event.occurrence = occurrences_[{boundary, kind, phase}]++;
    event.start_ns = ++clock_ * 1000;
    event.end_ns = event.start_ns + 500 + (made_.second ? 77 : 0);
    return event;
  }

  uint32_t add(const Event& event, const std::vector<Slot>& slots) {
    return log_.add(event, slots);
  }

  uint32_t operate(const std::string& boundary, const std::vector<Value>& reads,
                   const Value& leaves, const char* scalars = nullptr, SlotFlags out_flags = 0) {
    Event event = made_event(boundary);
    if (scalars) event.scalars = log_.string(scalars);
    std::vector<Slot> slots;
    for (size_t i = 0; i < reads.size(); ++i)
      slots.push_back(slot(SlotKind::in, reads[i], uint16_t(i),
                           reads[i].storage <= layers_ ? kModelValue | kParameter : 0));
    slots.push_back(slot(SlotKind::out, leaves, 0, out_flags));
    return add(event, slots);
  }

  Value fresh(uint64_t bits) { return {bits, ++storage_}; }

  void states() {
    Event event = made_event("<state>", EventKind::state);
    const uint64_t state = mix(made_.seed ^ (step_ * 31)) + (is_from(Change::generator) ? 1000 : 0);
    generator_ = state;
    uint64_t other = 77;
    for (const Change kind : {Change::unseeded, Change::drawn})
      if (is(kind, ~0u)) other = 78;
    const bool draws = kinds_[0] == Change::drawn || kinds_[1] == Change::drawn;
    if (draws && rank_ == hit_rank_ && step_ >= at_step_) other = mix(other + step_);
    add(event, {slot(SlotKind::in, {state, 0}, 0, 0, "torch.cpu"),
                slot(SlotKind::in, {other, 0}, 1, 0, "numpy")});
  }

  Value layer(uint32_t l, Value x) {
    for (uint32_t k = 0; k < operators_; ++k) {
      const std::string boundary = "model.op" + std::to_string(k) + ":l" +
                                   (made_.loops ? "" : std::to_string(l)) + "o" + std::to_string(k);
      if (is_here(l, k) && is(Change::missing, step_)) continue;
      const char* scalars = k % 2 == 0 ? "dim=-1" : nullptr;
      uint64_t salt = k + 7 * l;
      if (is_here(l, k) && is_from(Change::scalar)) scalars = "dim=0", salt += 1000;
      std::vector<Value> reads = {x};
      if (made_.partly && k == 1) reads[0] = fresh(mix(x.bits + 9));
      if (is_here(l, k) && is(Change::stale, step_)) reads[0] = fresh(first_batch_);
      if (k == 0) reads.push_back(parameters_[l]);
      if (k == 1 && l == 0 && step_ % 4 == steps_of_table_) reads.push_back(seen_table());
      uint64_t bits = salt;
      for (const Value& v : reads) bits = mix(bits ^ v.bits);
      if (k == 2) bits = mix(bits ^ generator_);  // dropout
      if (is_here(l, k) && is(Change::value, step_)) bits ^= 4;
      const Value y = fresh(bits);
      forward_.push_back({operate(boundary, reads, y, scalars), boundary, bits});
      if (is_here(l, k) && is(Change::extra, step_)) operate(boundary, {y}, fresh(mix(y.bits + 5)));
      x = y;
    }
    return x;
  }

  Value seen_table() {
    Value table = table_;
    if (is_from(Change::overwritten)) table.bits ^= 16;
    return table;
  }

  void looks_on(const Value& x) {
    const uint64_t change = is(Change::unused, step_) ? 2 : 0;
    const Value seen = fresh(mix(x.bits + 3) ^ change);
    auto first = [&] { operate("train.look:u0", {x}, seen); };
    auto second = [&] { operate("train.count:u1", {x}, fresh(mix(x.bits + 4))); };
    if (is(Change::order, ~0u)) {
      second();
      first();
    } else {
      first();
      second();
    }
  }

  uint64_t forward_and_backward() {
    states();
    forward_.clear();
    const Value batch =
        fresh(mix(made_.seed * 3 + step_ * 11 + rank_) ^ (is(Change::input, step_) ? 32 : 0));
    if (step_ == 0) first_batch_ = batch.bits;
    operate("train.next:data", {}, batch);
    Value x = layer(0, batch);
    if (noise_ != 0) {
      const Value empty = fresh(mix(noise_ + step_));
      operate("train.empty:em0", {}, empty, nullptr, kUninitialised);
      // It is filled in place, and read as garbage before.
      Event fill = made_event("train.fill_:em1");
      add(fill,
          {slot(SlotKind::in, empty, 0), slot(SlotKind::written, {x.bits, empty.storage, 2}, 0)});
    }
    for (uint32_t l = 1; l < layers_; ++l) x = layer(l, x);
    looks_on(x);
    last_ = x.bits;
    Event loss = made_event("train.backward:bw0", EventKind::loss, Phase::backward);
    add(loss, {slot(SlotKind::in, x, 0, kModelValue)});
    uint64_t& gradient = gradient_ = mix(x.bits);
    for (size_t i = forward_.size(); i-- > 0;) {
      Event node = made_event(forward_[i].boundary, EventKind::node, Phase::backward);
      node.forward = forward_[i].event;
      node.node = log_.string("MulBackward0");
      const Value in = fresh(gradient);
      gradient = mix(gradient ^ forward_[i].bits);
      add(node, {slot(SlotKind::in, in, 0), slot(SlotKind::out, fresh(gradient), 0)});
    }
    return gradient_;
  }

  void optimize() {
    const uint64_t gradient = gradient_;
    Event optimizer = made_event("train.step:opt", EventKind::optimizer, Phase::optimizer);
    std::vector<Slot> slots;
    uint16_t index = 0;
    for (uint32_t l = 0; l < layers_; ++l) {
      const std::string name = "layers." + std::to_string(l) + ".weight";
      slots.push_back(
          slot(SlotKind::in, parameters_[l], index, kModelValue, ("param:" + name).c_str()));
      slots.push_back(slot(SlotKind::in, fresh(mix(gradient + l)), uint16_t(index + layers_),
                           kModelValue, ("grad:" + name).c_str()));
      ++index;
    }
    index = 0;
    for (uint32_t l = 0; l < layers_; ++l) {
      const std::string name = "layers." + std::to_string(l) + ".weight";
      parameters_[l].bits = mix(parameters_[l].bits ^ mix(gradient + l));
      ++parameters_[l].version;
      slots.push_back(
          slot(SlotKind::written, parameters_[l], index++, kModelValue, ("param:" + name).c_str()));
    }
    add(optimizer, slots);
    if (is(Change::parameter, step_)) parameters_[at_layer_].bits ^= 64;
  }

  struct Forward {
    uint32_t event;
    std::string boundary;
    uint64_t bits;
  };

  const MadeTraining made_;
  const uint32_t rank_;
  LogWriter log_;
  std::mt19937_64 chance_;
  uint32_t layers_ = 0, operators_ = 0, steps_ = 0, step_ = 0, storage_ = 100;
  uint32_t at_step_ = 0, at_step_2_ = 0, at_layer_ = 0, at_operator_ = 0, steps_of_table_ = 0;
  uint32_t begin_ = 0;
  uint64_t gradient_ = 0, hit_rank_ = 0, generator_ = 0, clock_ = 0, noise_ = 0, last_ = 0;
  uint64_t first_batch_ = 0;
  bool wraps_ = false;
  Change kinds_[2] = {Change::none, Change::none};
  Value table_;
  std::vector<Value> parameters_;
  std::vector<Forward> forward_;
  std::map<std::tuple<std::string, EventKind, Phase>, uint32_t> occurrences_;
};

}  // namespace made

inline void MadeTraining::write(const std::string& dir) const {
  std::vector<std::unique_ptr<made::Rank>> all;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    all.push_back(std::make_unique<made::Rank>(*this, dir, rank));
    all.back()->begin();
  }
  uint32_t end = steps;  // ranks end together
  for (const auto& rank : all) end = std::min(end, rank->steps());
  for (uint32_t step = 0; step < end; ++step) {
    uint64_t reduced = 0;
    for (const auto& rank : all) reduced += rank->forward_and_backward(step);
    for (const auto& rank : all) rank->update(made::mix(reduced));
  }
  for (const auto& rank : all) rank->end();
}

}  // namespace opguard::test
