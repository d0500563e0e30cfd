// parallel_log KIND DIR STEPS LAYERS MICRO TP DP PP [CANDIDATE]: logs in mode `sketch` of a made-up
// training.
//
//   candidate   TP * DP * PP ranks: weights and heads are cut over TP ranks, micro-batches go to DP
//               ranks, layers to PP stages, which number theirs from 0
//   faulty      the same; from the middle step on one operator leaves another value, and so do all
//               behind it
//   reference   one process that has all of it, with the pieces that CANDIDATE's ranks hold
//   noise       the reference once more, each element moved by at most its unit roundoff
//
// Tensors are real, and their sketches those of the runtime. An element is a function of the
// tensor's number and of its index, so that ranks hold pieces of one tensor. Parts of a sum differ
// by more than the sum. Fingerprints are made of numbers. A transformer of 28 operators a layer,
// with their backward nodes. It prints how many records there are, and how many have a
// sketch.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "align/pair/run.h"
#include "cut_values.h"
#include "record/format.h"
#include "record/writer.h"
#include "session/slices.h"

using namespace opguard;
using namespace opguard::bench;

namespace {

constexpr int64_t kBatch = 2, kLength = 16, kWide = 64, kHeads = 8, kInner = 128, kWords = 256;
constexpr uint32_t kFaultyOperator = 25;
// Of every operator: record/call_stack.h.
constexpr const char* kCalls =
    "/home/me/model.py:41:Layer.forward\n/home/me/model.py:63:Model.forward\n";

struct Operator {
  const char* name;
  const char* module;
  Shape shape;
  int cut;
  std::vector<int> reads;  // earlier ones of the layer; -1: what the layer is given
  const char* weight = "";
  Shape weight_shape = {};
  int weight_cut = kWhole;
};

const Shape kRows = {kBatch, kLength, kWide}, kOne = {kBatch, kLength, 1},
            kHead = {kBatch, kHeads, kLength, kWide / kHeads},
            kScores = {kBatch, kHeads, kLength, kLength}, kMiddle = {kBatch, kLength, kInner};

const std::vector<Operator> kLayer = {
    {"pow", "norm1", kRows, kWhole, {-1}},
    {"mean", "norm1", kOne, kWhole, {0}},
    {"rsqrt", "norm1", kOne, kWhole, {1}},
    {"mul", "norm1", kRows, kWhole, {-1, 2}},
    {"weight", "norm1", kRows, kWhole, {3}, "norm1.weight", {kWide}},
    {"wq", "attention", kRows, 2, {4}, "attention.wq.weight", {kWide, kWide}, 0},
    {"wk", "attention", kRows, 2, {4}, "attention.wk.weight", {kWide, kWide}, 0},
    {"wv", "attention", kRows, 2, {4}, "attention.wv.weight", {kWide, kWide}, 0},
    {"q_heads", "attention", kHead, 1, {5}},
    {"k_heads", "attention", kHead, 1, {6}},
    {"v_heads", "attention", kHead, 1, {7}},
    {"scores", "attention", kScores, 1, {8, 9}},
    {"softmax", "attention", kScores, 1, {11}},
    {"mixed", "attention", kHead, 1, {12, 10}},
    {"merged", "attention", kRows, 2, {13}},
    {"wo", "attention", kRows, kParts, {14}, "attention.wo.weight", {kWide, kWide}, 1},
    {"residual1", "", kRows, kWhole, {-1, 15}},
    {"pow", "norm2", kRows, kWhole, {16}},
    {"mean", "norm2", kOne, kWhole, {17}},
    {"rsqrt", "norm2", kOne, kWhole, {18}},
    {"mul", "norm2", kRows, kWhole, {16, 19}},
    {"weight", "norm2", kRows, kWhole, {20}, "norm2.weight", {kWide}},
    {"w1", "ffn", kMiddle, 2, {21}, "ffn.w1.weight", {kInner, kWide}, 0},
    {"w3", "ffn", kMiddle, 2, {21}, "ffn.w3.weight", {kInner, kWide}, 0},
    {"silu", "ffn", kMiddle, 2, {22}},
    {"gate", "ffn", kMiddle, 2, {24, 23}},
    {"w2", "ffn", kRows, kParts, {25}, "ffn.w2.weight", {kWide, kInner}, 1},
    {"residual2", "", kRows, kWhole, {16, 26}},
};

class Training {
 public:
  Training(LogWriter& log, const CutValues& values)
      : log_(log), values_(values), layout_(values.layout), place_(values.place) {
    const uint32_t layers = layout_.layers / layout_.pp;
    first_layer_ = place_.stage * layers;
    last_layer_ = first_layer_ + layers;
  }

  uint32_t faulty_from = kNone;

  void run(uint32_t steps) {
    for (step_ = 0; step_ < steps; ++step_) step();
  }
  uint64_t records() const { return records_; }
  uint64_t sketched() const { return sketched_; }

 private:
  bool is_first() const { return first_layer_ == 0; }
  bool is_last() const { return last_layer_ == layout_.layers; }

  // Of a value of this step; `batch` kNone: of none.
  uint64_t id(const std::string& name, uint32_t batch) const {
    return scrambled(std::hash<std::string>()(name) ^
                     scrambled(step_ * uint64_t{4096} + (batch + 1) % 4096)) ^
           (faulty_ ? 1 : 0);
  }

  // ---- Events.

  void begin(const std::string& boundary, EventKind kind, Phase phase) {
    event_ = {};
    slots_.clear();
    codes_.clear();
    const auto [known, fresh] = boundaries_.try_emplace(boundary, kNone);
    if (fresh) {
      known->second = log_.string(boundary);
      if (boundary[0] != '<') {
        Location location;
        location.file = "model.py";
        location.line = static_cast<uint32_t>(boundaries_.size());
        log_.locate(boundary, location);
      }
    }
    event_.boundary = known->second;
    event_.kind = kind;
    event_.phase = phase;
    event_.step = step_;
    event_.occurrence = occurrences_[{known->second, int(kind)}]++;
    event_.begin = log_.events();
    event_.start_ns = clock_ += 900;
    event_.end_ns = clock_ += 4000;
  }

  void add(SlotKind kind, const std::string& name, const Value& value, bool sketched,
           SlotFlags flags = 0) {
    Slot slot;
    slot.kind = kind;
    for (const Slot& other : slots_) slot.index += other.kind == kind;
    slot.name = log_.string(name);
    slot.flags = flags;
    slot.meta = log_.meta({"float32", "cpu", values_.local(value)});
    slot.version = 1;
    const bool own = value.cut != kWhole;
    uint64_t bits = scrambled(value.id + (own ? place_.tensor + 1 : 0) + (values_.jitter << 32));
    bits = scrambled(bits ^ uint64_t(value.scale * 1024));
    slot.value = {bits, scrambled(bits)};
    slot.flat = scrambled(bits + 1);
    slot.has_digest = true;
    slot.digest = scrambled(bits + 2);
    const auto last = static_cast<uint32_t>(storages_.size()) + 1;
    slot.storage = storages_.try_emplace(bits, last).first->second;
    slot.address = 0x7f0000000000ull + (uint64_t{slot.storage} << 21);
    slot.size_bytes = 4;
    for (const int64_t n : values_.local(value)) slot.size_bytes *= static_cast<uint64_t>(n);
    if (sketched) {
      format::put_varint(codes_, slots_.size());
      codes_ += values_.code_of(value);
      ++sketches_;
    }
    slots_.push_back(slot);
  }

  uint32_t end(const std::string& module) {
    std::string entry;
    if (sketches_ > 0) {
      format::put_varint(entry, uint64_t{log_.string(module)} + 1);
      format::put_varint(entry, uint64_t{log_.string(kCalls)} + 1);
      format::put_varint(entry, sketches_);
      entry += codes_;
    }
    records_ += slots_.size();
    sketched_ += sketches_;
    sketches_ = 0;
    return log_.add(event_, slots_, entry);
  }

  // The value that ranks hold parts of, and the sum of these. Only runs of several ranks add up.
  void all_reduce(const std::string& boundary, const Value& value, const std::string& module,
                  Phase phase) {
    if (layout_.tp == 1) return;
    begin(boundary, EventKind::op, phase);
    event_.flags = kCollective | kInGraph;
    const uint32_t first = (place_.stage * layout_.dp + place_.data) * layout_.tp;
    event_.group =
        log_.string(std::to_string(first) + "-" + std::to_string(first + layout_.tp - 1));
    event_.sequence = ++sequence_;
    add(SlotKind::in, "arg0", value, false);
    add(SlotKind::written, "arg0", summed_if(true, value), true);
    end(module);
  }

  static Value summed_if(bool parts, Value value) {
    if (parts) value.cut = kWhole;
    return value;
  }

  // ---- The model.

  struct Ran {
    std::string boundary, module;
    uint32_t event = kNone;
    Value made;
    std::vector<Value> read;
    std::vector<bool> is_weight;
    std::string weight;  // its name here
    bool cuts_columns = false;
  };

  Ran operate(const Operator& op, const std::string& module, const std::string& number,
              uint32_t batch, const std::vector<Value>& read, const std::string& weight) {
    Ran ran;
    ran.boundary = std::string("model.") + op.name + ":" + op.name;
    ran.module = module;
    begin(ran.boundary, EventKind::op, Phase::forward);
    event_.micro_batch = batch_here(batch);
    event_.flags = kInGraph | kGradientsTold;
    for (size_t i = 0; i < read.size(); ++i) {
      add(SlotKind::in, "arg" + std::to_string(i), read[i], false, kWantsGradient);
      ran.read.push_back(read[i]);
      ran.is_weight.push_back(false);
    }
    if (op.weight[0] != 0) {
      ran.read.push_back(parameter(weight, op.weight_shape, op.weight_cut));
      ran.is_weight.push_back(true);
      ran.weight = weight;
      add(SlotKind::in, "param:weight", ran.read.back(), false, kParameter | kWantsGradient);
      ran.cuts_columns = op.weight_cut == 0;
    }
    ran.made = {id(number + op.name + op.module, batch), op.shape, op.cut};
    add(SlotKind::out, "out0", ran.made, true);
    ran.event = end(module);
    if (op.cut == kParts) {
      all_reduce("regions.all_reduce:sum", ran.made, module, Phase::forward);
      ran.made = summed_if(true, ran.made);
    }
    return ran;
  }

  // What the optimizer left before this step; the number of a layer is that of the whole model.
  Value parameter(const std::string& name, const Shape& shape, int cut) const {
    const bool other = faulty_from != kNone && step_ > faulty_from;
    return {scrambled(std::hash<std::string>()(name) + step_) ^ (other ? 1 : 0), shape, cut};
  }

  struct Weight {
    std::string name, here;  // of the whole model, of this process
    Shape shape;
    int cut;
  };

  std::vector<Weight> weights() const {
    std::vector<Weight> all;
    if (is_first()) all.push_back({"embedding.weight", "embedding.weight", {kWords, kWide}, 0});
    for (uint32_t layer = first_layer_; layer < last_layer_; ++layer)
      for (const Operator& op : kLayer)
        if (op.weight[0] != 0)
          all.push_back({"layers." + std::to_string(layer) + "." + op.weight,
                         "layers." + std::to_string(layer - first_layer_) + "." + op.weight,
                         op.weight_shape, op.weight_cut});
    if (is_last()) all.push_back({"output.weight", "output.weight", {kWords, kWide}, 0});
    return all;
  }

  uint32_t batch_here(uint32_t batch) const { return batch / layout_.dp; }
  double gradient_scale() const { return layout_.dp; }

  void backward(const Ran& ran, uint32_t batch) {
    begin(ran.boundary, EventKind::node, Phase::backward);
    event_.node = log_.string("Backward0");
    event_.forward = ran.event;
    event_.micro_batch = batch_here(batch);
    const std::vector<Value>& handed = gradients_[ran.made.id];
    // Of several readers autograd adds them up, and nobody is seen to make the sum.
    const Value sum{scrambled(ran.made.id), ran.made.shape, ran.made.cut, gradient_scale()};
    add(SlotKind::in, "grad0", handed.size() == 1 ? handed[0] : sum, false);
    std::vector<Value> parts;
    Value weight;
    for (size_t i = 0; i < ran.read.size(); ++i) {
      Value gradient{scrambled(ran.read[i].id + scrambled(ran.made.id)) ^ (faulty_ ? 1 : 0),
                     ran.read[i].shape, ran.read[i].cut, gradient_scale()};
      if (ran.is_weight[i]) {
        weight = gradient;
      } else {
        if (ran.cuts_columns) {
          gradient.cut = kParts;
          parts.push_back(gradient);
        }
        gradients_[ran.read[i].id].push_back(summed_if(ran.cuts_columns, gradient));
      }
      add(SlotKind::out, "out" + std::to_string(i), gradient, true);
    }
    end(ran.module);
    for (const Value& part : parts)
      all_reduce("regions.backward:copy", part, ran.module, Phase::backward);
    if (ran.weight.empty()) return;
    begin("<accumulate>", EventKind::accumulate, Phase::backward);
    event_.micro_batch = batch_here(batch);
    add(SlotKind::in, "grad0", weight, false);
    add(SlotKind::out, "grad:" + ran.weight, weight, false);
    end(ran.module);
  }

  void micro_batch(uint32_t batch) {
    std::vector<Ran> all;
    gradients_.clear();
    faulty_ = faulty_from != kNone && step_ > faulty_from;
    // What the stage before has left.
    Value x{id(std::to_string(first_layer_ - 1) + ".residual2", batch), kRows, kWhole};
    if (is_first()) {
      const Operator embed{"embedding", "embedding",        kRows,           kWhole,
                           {},          "embedding.weight", {kWords, kWide}, 0};
      all.push_back(operate(embed, "embedding", "", batch, {}, "embedding.weight"));
      x = all.back().made;
    }
    for (uint32_t layer = first_layer_; layer < last_layer_; ++layer) {
      const std::string here = "layers." + std::to_string(layer - first_layer_),
                        number = std::to_string(layer) + ".";
      std::vector<Value> made;
      for (size_t k = 0; k < kLayer.size(); ++k) {
        const Operator& op = kLayer[k];
        faulty_ = faulty_ ||
                  (step_ == faulty_from && layer == layout_.layers / 2 && k == kFaultyOperator);
        std::vector<Value> read;
        for (const int at : op.reads) read.push_back(at < 0 ? x : made[static_cast<size_t>(at)]);
        Ran ran = operate(op, op.module[0] == 0 ? here : here + "." + op.module, number, batch,
                          read, "layers." + number + op.weight);
        made.push_back(ran.made);
        all.push_back(std::move(ran));
      }
      x = made.back();
    }
    if (is_last()) {
      const Operator output{"output", "output",        {kBatch, kLength, kWords}, 2,
                            {},       "output.weight", {kWords, kWide},           0};
      all.push_back(operate(output, "output", "", batch, {x}, "output.weight"));
      const Operator loss{"loss", "", {}, kWhole, {}};
      all.push_back(operate(loss, "<root>", "", batch, {all.back().made}, ""));
      begin("<loss>", EventKind::loss, Phase::backward);
      event_.micro_batch = batch_here(batch);
      add(SlotKind::in, "arg0", all.back().made, true, kModelValue);
      end("<root>");
    }
    for (size_t i = all.size(); i-- > 0;) backward(all[i], batch);
  }

  void of_weights(const char* boundary, EventKind kind, Phase phase, bool gradients) {
    begin(boundary, kind, phase);
    for (const Weight& w : weights()) {
      Value value = parameter(w.name, w.shape, w.cut);
      if (gradients) value.id = scrambled(value.id) ^ (faulty_ ? 1 : 0);
      add(SlotKind::in, (gradients ? "grad:" : "param:") + w.here, value, true, kModelValue);
    }
    end("");
  }

  void step() {
    faulty_ = faulty_from != kNone && step_ > faulty_from;
    of_weights("<parameters>", EventKind::state, Phase::forward, false);
    for (uint32_t batch = place_.data; batch < layout_.micro_batches * layout_.dp;
         batch += layout_.dp)
      micro_batch(batch);
    faulty_ = faulty_from != kNone && step_ >= faulty_from;
    of_weights("<gradients>", EventKind::state, Phase::optimizer, true);
    begin("train.step:opt", EventKind::optimizer, Phase::optimizer);
    const uint32_t now = step_;
    for (const Weight& w : weights()) {
      add(SlotKind::in, "param:" + w.here, parameter(w.name, w.shape, w.cut), false, kModelValue);
      step_ = now + 1;
      add(SlotKind::out, "param:" + w.here, parameter(w.name, w.shape, w.cut), true, kModelValue);
      step_ = now;
    }
    end("");
  }

  LogWriter& log_;
  const CutValues& values_;
  const Layout layout_;
  const Place place_;
  uint32_t first_layer_, last_layer_, step_ = 0, sequence_ = 0;
  bool faulty_ = false;
  Event event_;
  std::vector<Slot> slots_;
  std::string codes_;
  uint64_t sketches_ = 0, records_ = 0, sketched_ = 0, clock_ = 1'000'000;
  std::map<uint64_t, std::vector<Value>> gradients_;  // of a value, as its readers leave them
  std::unordered_map<uint64_t, uint32_t> storages_;
  std::map<std::string, uint32_t> boundaries_;
  std::map<std::pair<uint32_t, int>, uint32_t> occurrences_;
};

int failed(const std::string& text) {
  std::fprintf(stderr, "parallel_log: %s\n", text.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 9)
    return failed("candidate|faulty|reference|noise DIR STEPS LAYERS MICRO TP DP PP [CANDIDATE]");
  const std::string kind = argv[1];
  const auto number = [&](int i) { return static_cast<uint32_t>(std::atoi(argv[i])); };
  const uint32_t steps = number(3);
  const Layout layout{number(4), number(5), number(6), number(7), number(8)};
  const Layout alone{layout.layers, layout.micro_batches * layout.dp};
  const bool whole = kind == "reference" || kind == "noise";
  if (layout.ranks() == 0 || kHeads % layout.tp != 0 || layout.layers % layout.pp != 0)
    return failed("8 heads or the layers are not divided so");
  uint64_t records = 0, sketched = 0;
  for (uint32_t rank = 0; rank < (whole ? 1 : layout.ranks()); ++rank) {
    WriterLimits limits;
    limits.thread = false;
    LogWriter log(limits);
    if (!log.open(argv[2], static_cast<int32_t>(rank), whole ? 1 : int32_t(layout.ranks()),
                  100 + rank, 1))
      return failed(log.error());
    const Place place{rank % layout.tp, rank / layout.tp % layout.dp, rank / layout.tp / layout.dp};
    CutValues values{whole ? alone : layout, whole ? Place{} : place};
    std::map<std::string, std::string> settings = {{"mode", "sketch"}};
    // Ranks round otherwise than the reference.
    if (kind != "reference") values.jitter = kind == "noise" ? 1 : 2;
    if (kind == "noise") settings["jitter"] = "1";
    if (kind == "reference" && argc > 9) {
      auto candidate = load_run(argv[9]);
      if (!candidate) return failed(llvm::toString(candidate.takeError()));
      const std::string slices = slices_of(*candidate);
      settings["slices"] = slices_digest(slices);
      values.world = layout.ranks();
      values.outer = {kBatch};
      std::set<Shape> shapes;
      for (const ProcessLog& process : candidate->processes)
        for (const Meta& meta : process.metas) shapes.insert(meta.shape);
      values.locals.assign(shapes.begin(), shapes.end());
    }
    log.set(settings);
    Training training(log, values);
    if (kind == "faulty") training.faulty_from = steps / 2;
    training.run(steps);
    records += training.records();
    sketched += training.sketched();
    if (!log.close() || log.lost() > 0) return failed(log.path() + ": " + log.error());
  }
  std::printf("%llu %llu\n", static_cast<unsigned long long>(records),
              static_cast<unsigned long long>(sketched));
}
