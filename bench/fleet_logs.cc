// fleet_logs DIR RANKS STEPS RECORDS [RANK STEP]: logs of a made-up data parallel job.
//
// Each rank makes STEPS steps of about RECORDS records. There are operators that read two values
// and leave one, an all_reduce of the gradient over all ranks, an optimizer's step. In step STEP
// one operator of RANK leaves another value; its gradient brings it to all others, as parameters
// then.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "record/writer.h"

using namespace opguard;

namespace {

constexpr uint32_t kOperators = 16;

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

class Rank {
 public:
  Rank(const std::string& dir, uint32_t rank, uint32_t ranks) : rank_(rank) {
    WriterLimits limits;
    limits.thread = false;  // thousands of ranks, one after the other
    limits.batch_bytes = 32 * 1024;
    log_ = std::make_unique<LogWriter>(limits);
    if (!log_->open(dir, int32_t(rank), int32_t(ranks), 1000 + rank, 1)) {
      std::fprintf(stderr, "%s\n", log_->error().c_str());
      std::exit(1);
    }
    log_->set({{"mode", "full"}, {"group.0-" + std::to_string(ranks - 1), "data"}});
    for (uint32_t k = 0; k < kOperators; ++k)
      operators_[k] = log_->string("model.operator" + std::to_string(k) + ":a" + std::to_string(k));
    for (const char* name : {"arg0", "weight", "out0", "param:weight", "grad:weight"})
      names_.push_back(log_->string(name));
    batch_ = log_->string("train.batch:ba0");
    reduce_ = log_->string("train.all_reduce:ar0");
    optimizer_ = log_->string("train.step:opt0");
    group_ = log_->string("0-" + std::to_string(ranks - 1));
    meta_ = log_->meta({"float32", "cpu", {64, 64}});
  }

  void forward(uint32_t step, uint32_t records, bool other) {
    step_ = step;
    Value value = fresh(mix((uint64_t{rank_} << 40) ^ step));
    Event batch = made(batch_);
    batch.occurrence = step;
    log_->add(batch, {slot(SlotKind::out, 0, names_[2], value)});
    for (uint32_t k = 0; k * 3 < records; ++k) {
      Event event = made(operators_[k % kOperators]);
      event.occurrence = step * (records / 3 + 1) + k;
      const Value left = fresh(mix((value.bits ^ weight_.bits) + k) ^ (other && k * 6 > records));
      Slot weight = slot(SlotKind::in, 1, names_[1], weight_);
      weight.flags = kModelValue | kParameter;
      log_->add(event, {slot(SlotKind::in, 0, names_[0], value), weight,
                        slot(SlotKind::out, 0, names_[2], left)});
      value = left;
    }
    given_ = value;
  }

  void update(uint64_t sum) {
    Event event = made(reduce_);
    event.flags = kCollective;
    event.group = group_;
    event.sequence = step_ + 1;
    event.occurrence = step_;
    const Value reduced{sum, given_.storage, 2};
    log_->add(event, {slot(SlotKind::in, 0, names_[0], given_),
                      slot(SlotKind::written, 0, names_[0], reduced)});
    Event optimizer = made(optimizer_);
    optimizer.kind = EventKind::optimizer;
    optimizer.phase = Phase::optimizer;
    optimizer.occurrence = step_;
    Slot before = slot(SlotKind::in, 0, names_[3], weight_);
    weight_ = {mix(weight_.bits ^ sum), weight_.storage, weight_.version + 1};
    Slot after = slot(SlotKind::written, 0, names_[3], weight_);
    before.flags = after.flags = kModelValue;
    log_->add(optimizer, {before, slot(SlotKind::in, 1, names_[4], reduced), after});
  }

  bool close() { return log_->close(); }

 private:
  // What lies in a memory block.
  struct Value {
    uint64_t bits = 0;
    uint32_t storage = 0, version = 1;
  };
  Value fresh(uint64_t bits) { return {bits, ++storage_}; }
  Event made(uint32_t boundary) {
    Event event;
    event.boundary = boundary;
    event.step = step_;
    event.begin = log_->events();
    event.start_ns = clock_ += 1000;
    event.end_ns = clock_ + 500;
    return event;
  }
  Slot slot(SlotKind kind, uint16_t index, uint32_t name, const Value& value) const {
    Slot s;
    s.kind = kind;
    s.index = index;
    s.name = name;
    s.meta = meta_;
    s.version = value.version;
    s.storage = value.storage;
    // The allocator gives freed memory out again, but for the parameter's.
    const uint64_t place = value.storage == 1 ? 0 : 1 + value.storage % 4095;
    s.address = 0x7f0000000000ull + (place << 14);
    s.size_bytes = 64 * 64 * 4;
    s.value = {value.bits, mix(value.bits)};
    s.flat = mix(value.bits + 1);
    return s;
  }

  std::unique_ptr<LogWriter> log_;
  const uint32_t rank_;
  uint32_t step_ = 0, operators_[kOperators], batch_ = 0, reduce_ = 0, optimizer_ = 0, group_ = 0,
           meta_ = 0;
  std::vector<uint32_t> names_;
  uint32_t storage_ = 1;
  Value weight_{1, 1}, given_;
  uint64_t clock_ = 0;
};

}  // namespace

// Ranks are written one after the other, so that there is one open file. What the others give to a
// step's sum is made again for each. Only the sum of all ranks' values is needed.
int main(int argc, char** argv) {
  if (argc != 5 && argc != 7) {
    std::fprintf(stderr, "fleet_logs DIR RANKS STEPS RECORDS [RANK STEP]\n");
    return 2;
  }
  const std::string dir = argv[1];
  const auto number = [&](int i) { return uint32_t(std::strtoul(argv[i], nullptr, 10)); };
  const uint32_t ranks = number(2), steps = number(3), records = number(4);
  const uint32_t at_rank = argc == 7 ? number(5) : kNone, at_step = argc == 7 ? number(6) : kNone;
  // A step's sum, told from the parameters alone: where one rank's gradient is another one, so is
  // the sum, and all that follows.
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    Rank one(dir, rank, ranks);
    uint64_t reduced = 1;
    for (uint32_t step = 0; step < steps; ++step) {
      one.forward(step, records, rank == at_rank && step == at_step);
      reduced = mix(reduced + step + (step == at_step ? 77 : 0));
      one.update(reduced);
    }
    if (!one.close()) return 1;
  }
  return 0;
}
