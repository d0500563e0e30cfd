// training_log DIR RECORDS [same | value | insert | edited] [RANKS]: logs of a made-up training
// run.
//
// Steps of 48 layers x 20 operators (two tensors read, one left), their backward nodes, a loss and
// an optimizer step of 96 parameters. That makes about 6,000 records a step. Every value is another
// one, as in a real run. `value`: from the middle on, every result is another one. `insert`: one
// operator more in each tenth of the run. `edited`: `value`, and all along one operator in a
// hundred is missing and one in a hundred more is there, as after a refactor. Records are per rank,
// as many steps whatever the change.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "record/writer.h"

using namespace opguard;

namespace {

constexpr uint32_t kLayers = 48, kOperators = 20, kParameters = 96;

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

class Training {
 public:
  Training(LogWriter& log, uint64_t records, const std::string& change, uint64_t rank)
      : log_(log),
        records_(records),
        change_(change),
        edited_(change == "edited"),
        salt_(rank << 56) {
    for (uint32_t k = 0; k < kOperators; ++k)
      boundaries_.push_back(
          log.string("model.operator" + std::to_string(k) + ":a" + std::to_string(k)));
    for (uint32_t k = 0; k < kParameters; ++k)
      parameters_.push_back(log.string("param:layers." + std::to_string(k) + ".weight"));
    for (const char* name : {"self", "arg0", "out0", "grad0", "dim=-1", "ProductBackward0"})
      names_.push_back(log.string(name));
    optimizer_ = log.string("train.step:opt0");
    loss_ = log.string("<loss>");
    for (int64_t n : {64, 128, 256})
      metas_.push_back(log.meta({"bfloat16", "cuda:0", {8, n, 1024}}));
  }

  void run() {
    while (made_ < records_) step();
  }

 private:
  // The value of the n-th result of the run.
  void set_value(Slot& slot, uint64_t n) const {
    const bool other = n > changed_from_;
    const uint64_t x = mix(n ^ salt_ ^ (other ? 1ull << 55 : 0));
    slot.value = {x, mix(x)};
    slot.flat = mix(x + 1);
    slot.has_digest = true;
    slot.digest = mix(x + 2);
  }

  Slot slot(SlotKind kind, uint16_t index, uint32_t name, uint64_t n) const {
    Slot slot;
    slot.kind = kind;
    slot.index = index;
    slot.name = name;
    slot.meta = metas_[n % 3];
    slot.version = 1;
    slot.storage = uint32_t(n % 4096 + 1);
    slot.address = 0x7f0000000000ull + (n % 4096 << 21);
    slot.size_bytes = 8 * 256 * 1024 * 2;
    set_value(slot, n);
    return slot;
  }

  void add(Event event, std::vector<Slot> slots) {
    event.step = step_;
    event.begin = log_.events();
    event.start_ns = clock_ += 900 + event.begin % 7;
    event.end_ns = clock_ += 4000;
    made_ += slots.size();
    last_ = log_.add(event, slots);
  }

  void operate(uint32_t k) {
    Event event;
    event.boundary = boundaries_[k];
    event.occurrence = forward_[k]++;
    event.scalars = k % 3 == 0 ? names_[4] : kNone;
    if (edited_ && one_in_a_hundred(1)) {
      // It ran, unrecorded: what it left is there all the same.
      made_ += 3;
      last_ = kNone;
    } else {
      add(event,
          {slot(SlotKind::in, 0, names_[0], value_), slot(SlotKind::in, 1, names_[1], value_ - 7),
           slot(SlotKind::out, 0, names_[2], value_ + 1)});
    }
    ++value_;
  }

  bool one_in_a_hundred(uint64_t salt) const { return mix(value_ * 4 + salt) % 100 == 0; }

  // One operator more, which reads what the others read; nobody reads what it leaves.
  void look(uint32_t k) {
    Event event;
    event.boundary = boundaries_[k];
    event.occurrence = forward_[k]++;
    add(event, {slot(SlotKind::in, 0, names_[0], value_),
                slot(SlotKind::out, 0, names_[2], (1ull << 50) + inserted_++)});
    made_ -= 2;  // as many steps as without it
  }

  void step() {
    changed_from_ =
        (edited_ || change_ == "value") && changed_from_ == UINT64_MAX && made_ >= records_ / 2
            ? value_
            : changed_from_;
    std::vector<uint32_t> forward;
    for (uint32_t layer = 0; layer < kLayers; ++layer)
      for (uint32_t k = 0; k < kOperators; ++k) {
        operate(k);
        forward.push_back(last_);
        if ((change_ == "insert" && made_ >= inserted_ * (records_ / 10)) ||
            (edited_ && one_in_a_hundred(2)))
          look(k);
      }
    Event loss;
    loss.boundary = loss_;
    loss.kind = EventKind::loss;
    loss.phase = Phase::backward;
    loss.occurrence = step_;
    Slot root = slot(SlotKind::in, 0, names_[1], value_);
    root.flags = kModelValue;
    add(loss, {root});
    for (uint32_t i = forward.size(); i-- > 0;) {
      if (forward[i] == kNone) {  // no node without its forward
        made_ += 2;
        ++value_;
        continue;
      }
      Event node;
      node.boundary = boundaries_[i % kOperators];
      node.kind = EventKind::node;
      node.phase = Phase::backward;
      node.node = names_[5];
      node.forward = forward[i];
      node.occurrence = backward_[i % kOperators]++;
      add(node, {slot(SlotKind::in, 0, names_[3], value_),
                 slot(SlotKind::out, 0, names_[2], value_ + 1)});
      ++value_;
    }
    Event optimizer;
    optimizer.boundary = optimizer_;
    optimizer.kind = EventKind::optimizer;
    optimizer.phase = Phase::optimizer;
    optimizer.occurrence = step_;
    std::vector<Slot> slots;
    for (uint16_t k = 0; k < kParameters; ++k)
      slots.push_back(slot(SlotKind::in, k, parameters_[k], value_ - k));
    for (uint16_t k = 0; k < kParameters; ++k) {
      slots.push_back(slot(SlotKind::out, k, parameters_[k], ++value_));
      slots.back().flags = kModelValue;
    }
    add(optimizer, slots);
    ++step_;
  }

  LogWriter& log_;
  const uint64_t records_;
  const std::string change_;
  const bool edited_;
  const uint64_t salt_;
  std::vector<uint32_t> boundaries_, parameters_, names_, metas_;
  uint32_t optimizer_ = 0, loss_ = 0, last_ = 0, step_ = 0;
  uint32_t forward_[kOperators] = {}, backward_[kOperators] = {};
  uint64_t made_ = 0, value_ = 100, clock_ = 1'000'000, inserted_ = 1, changed_from_ = UINT64_MAX;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3)
    return std::fputs("usage: training_log DIR RECORDS [same|value|insert|edited] [RANKS]\n",
                      stderr),
           2;
  const std::string change = argc > 3 ? argv[3] : "same";
  const int ranks = argc > 4 ? std::atoi(argv[4]) : 1;
  for (int rank = 0; rank < ranks; ++rank) {
    WriterLimits limits;
    limits.thread = false;
    LogWriter log(limits);
    if (!log.open(argv[1], rank, ranks, 100 + rank, 1))
      return std::fprintf(stderr, "%s\n", log.error().c_str()), 2;
    Training(log, std::strtoull(argv[2], nullptr, 10), change, rank).run();
    if (!log.close() || log.lost() > 0)
      return std::fprintf(stderr, "%s: %s, %llu lost\n", log.path().c_str(), log.error().c_str(),
                          static_cast<unsigned long long>(log.lost())),
             2;
  }
}
