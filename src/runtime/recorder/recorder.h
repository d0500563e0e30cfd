// runtime/recorder/recorder.h: the process's log and where each thread is in the program.
//
//   thread 0    og: linear  [open_event 17 ... read 2 inputs ... 1 output ... add]   step 3
//   thread 1                     accumulate [open_event ... add]                     the same log
//
// An event has its coordinates as it begins: step, micro-batch, occurrence, thread. Its number in
// the log it gets as it ends, so an operator comes behind those that ran inside of it. While a
// thread does our own work (OwnWork), probes that it hits only forward: reading a tensor calls
// torch, which may be instrumented.
//
// Counterexample: a forked child has its parent's memory but not its log. It forgets that one
// first, and begins another when it records for the first time (on()).
//
// All calls come with the GIL held, which an extension of the stable ABI always has: the log has no
// other lock for them. The cost: 63 ns in the writer for a record. Reading the tensors is what
// takes the time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "record/sketch.h"
#include "record/step_ring.h"
#include "record/step_window.h"
#include "record/writer.h"
#include "runtime/host/py.h"
#include "runtime/host/tensor_view.h"
#include "runtime/recorder/captured_graph.h"
#include "runtime/recorder/latest_rows.h"
#include "runtime/recorder/launches.h"
#include "runtime/recorder/storage.h"

namespace opguard {

class Watch;

// docs/design/runtime.md. In the order of how much they record.
enum class Mode : uint8_t { model, sdc, trusted, carrying, full };

// How a tensor's value comes about.
enum class Reading : uint8_t {
  usual,    // as the mode says: read, or carried over
  forced,   // read: it may have been written by what counts no versions
  aside,    // as forced, of what no operator at hand holds: another thread may free its memory
  compiled  // read, and nothing known of its memory: a compiled graph reuses it unseen
};

// An operator in progress.
struct Running {
  const std::string* boundary = nullptr;  // lives as long as the process
  uint64_t serial = 0;
  bool communicates = false;  // a call of torch.distributed's own functions
  Ref flight;                 // the collective it launched (runtime/entries/collective.h)
};

struct OptimizerStep {
  PyObject* optimizer = nullptr;  // only compared, never followed
  Event event;
  std::vector<Slot> slots;
  uint64_t generation = 0;  // of the log its strings are in
  size_t depth = 0;         // operators in progress in this thread when it began
  int closures = 0;         // the program's closure is running, called by the step
  bool of_torch = true;     // a torch.optim.Optimizer
  bool superseded = false;  // an optimizer of torch's steps inside: that one is recorded
  std::shared_ptr<Watch> watch;
};

// Tensors read since the thread's latest OwnWork began: while it lasts the program does not run.
struct Recent {
  static constexpr size_t kCount = 8;
  struct Entry {
    PyObject* tensor = nullptr;  // only compared; whoever had it read holds it
    const void* data = nullptr;
    uint32_t version = 0, meta = 0, storage = 0;
    Value value;
  };
  Entry entries[kCount];
  size_t count = 0;  // since the beginning; of which the latest kCount are there

  bool has(const Value& value) const {
    for (size_t i = 0; i < std::min(count, kCount); ++i)
      if (value.reading != 0 && entries[i].value.reading == value.reading) return true;
    return false;
  }
};

struct CollectorMemory;  // values.cc

struct ThreadState {
  uint32_t number = 0;
  bool inside = false;  // our own work is on the stack: probes it hits only forward
  // What the guards of OwnWork ask of this thread at each event; a look-up of a thread's own
  // variable is a call.
  TorchFunctionOff** const functions_off = TorchFunctionOff::innermost();
  void* const* tracing = nullptr;
  Recent recent;
  Launches launches;
  TensorView view;                           // of the tensor being read, its memory used again
  std::vector<CollectorMemory*> collectors;  // of those that are gone
  std::vector<Slot> slots;                   // of the event that is being made
  std::vector<Running> running;
  std::vector<OptimizerStep> optimizers;
};

class Recorder {
 public:
  // A boundary as a probe names it, and what the log has of it.
  struct Site {
    std::string text;
    uint64_t generation = 0;  // of the log that the next two are of
    uint32_t string = 0;      // its text there
    bool located = false;
  };

  // Before start(): of each log the end alone stays, as "20GB,6h". Or another process uploads it,
  // and so much of it waits at most, as "4GB". False: `error` says why not.
  bool keep(std::string_view limits, std::string_view spool, std::string& error);
  // `settings` is called without arguments when the log is opened and when it is closed, for a dict
  // of str. `states` is called at step boundaries, for a dict of bytes and tensors.
  void start(const std::string& dir, int32_t rank, int32_t world, Mode mode, PyObject* settings,
             PyObject* states);
  // After the records of this step's end `callback` is called, once, on the main thread, between
  // two of the program's instructions.
  void end_after(uint32_t step, PyObject* callback);
  // Before the first event: each step is compared with the index of an earlier run's log. As a step
  // ends `callback` is called with its number, and the number of the first step that differs or -1.
  // Where it gives True, the callback of end_after() is called. False: `error` says why not.
  bool hold_against(const std::string& index, PyObject* callback, std::string& error);
  // From now on the number of steps that are over stands in this file.
  void count_steps_in(const char* path);
  // Before the first event: only these steps are recorded, the first of all is `first`. Behind the
  // window's end `callback` is called as end_after() does, a step later, to close the log. Not a
  // callable: none. marked: nothing but mark_step() ends a step.
  void record_steps(const StepWindow& window, uint32_t first, bool marked, PyObject* callback);
  // Before the first event: the last steps are held, and written when `watchers` says so. It is
  // called as a step ends, with its number and whether the run is over: None, or (folder, why).
  void hold_steps(uint32_t steps, PyObject* watchers);
  // Now, in the middle of a step. False: nothing is held, or at_work().
  bool write_ring_now(const std::string& folder, std::string_view why);
  // Is this thread within the recorder, or is a graph being captured?
  bool at_work();
  Mode mode() const { return mode_; }
  // Does it record operators?
  bool on_operators() { return mode_ != Mode::sdc && on(); }
  // Now or in a step to come?
  bool may_record_operators() { return mode_ != Mode::sdc && alive(); }
  // Does it record this step? False also in a forked child until it has forgotten its parent's log.
  bool on() { return active_ && alive(); }
  // Does it count steps, to record some? Between the steps of a window only that.
  bool alive();
  void close();
  // The same of a log within a process that goes on: start() may follow, and begins another one.
  void rest();
  // By the thread that forks, with or without the GIL.
  void before_fork();

  ThreadState& thread();

  // A new event with its coordinates; `begin` and the time are now.
  Event open_event(std::string_view boundary, EventKind kind, Phase phase);
  Event open_event(std::string_view boundary, EventKind kind, Phase phase,
                   const ThreadState& thread);
  Event open_event(Site& site, EventKind kind, Phase phase, const ThreadState& thread);
  uint32_t string(std::string_view text);
  uint32_t meta(const TensorView& view);
  // The record of a tensor as it is now. object: the tensor, where it is one the program may write.
  Slot slot(const TensorView& view, SlotKind kind, uint16_t index, std::string_view name,
            SlotFlags flags, PyObject* object = nullptr, Reading reading = Reading::usual,
            ThreadState* of = nullptr);
  // The same of a plain tensor of few numbers, read from torch's struct: kind, flags and index are
  // in `slot`. False: not such a tensor, `slot` is as it was.
  bool tiny_slot(const TensorFields& tensor, PyObject* object, std::string_view name, Slot& slot);
  // The occurrence that commit() would give it now.
  uint32_t next_occurrence(const Event& event) const;
  // The event's index, kNone if it was lost.
  uint32_t commit(Event& event, const std::vector<Slot>& slots);
  void lose(uint64_t records);
  // Is this step recorded? Then the log has begun.
  bool may_observe();
  uint32_t schema(const ObservationSchema& schema);
  // An observation of now (observations.h); values: their code.
  void observe(uint32_t schema, uint32_t values, std::string_view code);
  void flush_soon();
  // Settings that are known only now; a log that begins later asks for them itself.
  void tell(const std::map<std::string, std::string>& settings);
  // Something of ours failed: counted, the first one told on stderr. Clears the error in flight.
  void fault(const char* what);

  bool located(Site& site) const {
    return site.located || (site.located = located_.contains(site.text));
  }
  // True once per boundary.
  bool unlocated(const std::string& boundary);
  void locate(const std::string& boundary, const Location& location);

  Site& site(PyObject* id);  // lives as long as the process

  uint64_t enter(ThreadState& thread, const std::string& boundary);  // one kept for ever
  void leave(ThreadState& thread, uint64_t serial);
  // Innermost operator of this thread, else the process's latest still in progress, else
  // `fallback`.
  std::string innermost(const ThreadState& thread, std::string_view fallback);

  // A backward pass begins, an optimizer has stepped: how steps are recognised without marks.
  void count_backward() {
    if (!alive()) return;
    if (note_in_capture(CapturedGraph::Kind::backward)) return;
    if (!marked_micro_batches_) ++micro_batch_;
  }
  void count_step() {
    if (note_in_capture(CapturedGraph::Kind::step)) return;
    if (!marked_steps_) begin_step();
  }
  // The program or the plan says so, and from now on nothing else does. What was counted before the
  // first mark stands for it. Under OwnWork.
  void mark_step();
  void mark_micro_batch();
  // The random number generators as they are now, an event of kind state. Under OwnWork.
  void record_state();
  // The same before an operator that draws from them; of torch's alone, where it is torch's.
  void record_generators(Phase phase, bool of_torch);
  // Tensors by name, an event of kind state with model values. items: a list of (str, tensor).
  // Under OwnWork.
  void record_tensors(std::string_view boundary, PyObject* items);
  uint32_t step() const { return step_; }
  uint32_t micro_batch() const { return micro_batch_; }
  uint64_t generation() const { return generation_; }  // changes when indexes start afresh

  // While a graph is captured (runtime/recorder/captured_graph.h) its thread's events are the
  // graph's. nullptr: another one is being captured.
  std::shared_ptr<CapturedGraph> begin_capture();
  void end_capture(const std::shared_ptr<CapturedGraph>& graph);
  struct Replay {
    bool begun = false;
    uint64_t first = 0;  // Tickets::replayed()
    uint32_t stream = 0;
  };
  Replay begin_replay(const std::shared_ptr<CapturedGraph>& graph);
  void end_replay(const std::shared_ptr<CapturedGraph>& graph, const Replay& replay, bool failed);
  void forget_graph(CapturedGraph& graph);
  bool capturing() const { return capturing_ != nullptr; }

 private:
  bool captures(const ThreadState& thread, Phase phase) const;
  uint64_t graph_of_capture(const Launches::Stream& stream);
  bool note_in_capture(CapturedGraph::Kind kind);
  uint32_t commit_captured(const Event& event, const std::vector<Slot>& slots);
  // What began in a capture, or speaks of one, and ends outside of it.
  static bool left_capture(const Event& event, const std::vector<Slot>& slots);
  void leave_capture(Event& event, std::vector<Slot>& slots) const;
  uint32_t replayed_index(uint32_t captured) const;
  static uint64_t clock();

  void record_states(std::string_view boundary, Phase phase, PyObject* only_torch);
  // known: of the same elements in another order, whose layout-free digest is taken from there.
  // sketch: where it is wanted, and comes with it.
  Value digest(const TensorView& view, Reading reading = Reading::usual,
               const Value* known = nullptr, std::optional<Sketch>* sketch = nullptr);
  Value read_again(const TensorView& view, const Storages::Shared& like, bool certain);
  Value read(const TensorView& view, ThreadState& of, Reading reading = Reading::usual,
             std::optional<Sketch>* sketch = nullptr);
  static Value reread(const TensorView& view, Value known);
  bool lasts(const Value& value, const TensorView& view, ThreadState& of);
  Value value_of(const TensorView& view, PyObject* object, Reading reading, ThreadState& of,
                 Slot& slot, std::optional<Sketch>* sketch);

  uint32_t meta_of_row(const TensorType& type, size_t dims, int64_t count);
  uint32_t add(Event& event, const std::vector<Slot>& slots);
  Event event_now(uint32_t boundary, EventKind kind, Phase phase, const ThreadState& thread);
  void reset_after_fork();
  void begin_writer();
  void end_log();
  bool ensure_open();
  void begin_log();
  void begin_step();
  void enter_window();
  void tell_compared(uint32_t step);
  void ask_watchers(bool ending);
  void write_ring(const std::string& folder, std::string_view why, bool whole);
  // Of the log, also where it is not written yet.
  uint64_t events() const { return ring_.on() ? ring_.events() : writer_->events(); }
  static int64_t wall_clock_ns();
  void forget_log();
  void call_later(PyObject*& callback, const char* failure);
  void look_whether_active();
  void write_progress();
  void take_settings();

  bool recording_ = false;
  bool active_ = false;  // and this step is one to record
  StepWindow window_;
  PyObject* at_window_end_ = nullptr;
  StepRing ring_;
  LatestRows latest_rows_;
  PyObject* watchers_ = nullptr;
  Mode mode_ = Mode::full;
  std::string dir_;
  int32_t rank_ = 0, world_ = 1;
  PyObject *settings_ = nullptr, *states_ = nullptr;
  int progress_fd_ = -1;        // see count_steps_in()
  uint32_t last_step_ = kNone;  // see end_after()
  PyObject* at_last_step_ = nullptr;
  StepsAgainst* against_ = nullptr;  // see hold_against()
  PyObject* compared_ = nullptr;
  WriterLimits writer_limits_;
  LogWriter* writer_ = nullptr;  // never destroyed: no order of static destructors can hurt it
  bool opened_ = false, told_ = false;
  bool marked_steps_ = false, marked_micro_batches_ = false;
  uint64_t faults_ = 0, serial_ = 0, generation_ = 0;
  uint32_t step_ = 0, micro_batch_ = 0, threads_ = 0;
  std::shared_ptr<CapturedGraph> capturing_;
  std::vector<std::weak_ptr<CapturedGraph>> graphs_;  // by their number
  std::vector<Running> running_;                      // of all threads, in order of beginning
  std::unordered_set<std::string> located_;
  struct Key {
    uint32_t boundary, node;
    uint8_t kind, phase;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& k) const {
      uint64_t x = (uint64_t{k.boundary} << 32 | k.node) ^ (uint64_t{k.kind} << 60) ^
                   (uint64_t{k.phase} << 56);
      return static_cast<size_t>(x * 0x9e3779b97f4a7c15u >> 16);
    }
  };
  static Key key_of(const Event& event) {
    return {event.boundary, event.node, static_cast<uint8_t>(event.kind),
            static_cast<uint8_t>(event.phase)};
  }
  // The next ones: of sites' operators by the boundary's string and the phase, and of all else.
  static bool is_operator(const Event& event) {
    return event.kind == EventKind::op && event.node == kNone;
  }
  std::vector<std::array<uint32_t, 4>> operators_;
  std::unordered_map<Key, uint32_t, KeyHash> occurrences_;

  // In front of the log's own tables, of fixed size: what comes every time is found without a copy.
  struct KnownString {
    uint64_t generation = 0;
    std::string text;
    uint32_t index = 0;
  };
  // Of at most 8 bytes, which most slots' names are: the bytes themselves are compared.
  struct ShortString {
    uint64_t generation = 0, text = 0;
    uint32_t size = 0, index = 0;
  };
  struct KnownMeta {
    uint64_t generation = 0;
    uint16_t dtype = 0;
    std::string device;
    std::vector<int64_t> shape;
    uint32_t index = 0;
  };
  // Of a processor's tensor whose dimensions but the last are 1.
  struct KnownRow {
    uint64_t generation = 0;
    const TensorType* type = nullptr;
    size_t dims = 0;
    int64_t count = 0;
    uint32_t index = 0;
  };
  struct KnownId {
    PyObject* id = nullptr;  // owned: a probe's literal
    Site* site = nullptr;
  };
  static constexpr size_t kKnown = 4096;
  static constexpr size_t kShort = 256;
  std::vector<ShortString> short_strings_{kShort};
  std::vector<KnownString> known_strings_{kKnown};
  std::vector<KnownMeta> known_metas_{kKnown};
  std::vector<KnownId> known_ids_{kKnown};
  std::vector<KnownRow> known_rows_{kShort};
  std::unordered_map<std::string, Site> sites_;  // whose elements stay where they are
};

inline Recorder* g_recorder = nullptr;
Recorder& make_recorder();
// Never destroyed: hooks may still fire while the interpreter shuts down.
inline Recorder& recorder() { return g_recorder != nullptr ? *g_recorder : make_recorder(); }

// Around all of our own work on a thread. Probes only forward, and the program's error is put
// aside. Whatever error of our own is left at the end is a fault.
class OwnWork {
 public:
  OwnWork() : OwnWork(recorder().thread()) {}
  explicit OwnWork(ThreadState& thread);  // the one running now
  OwnWork(const OwnWork&) = delete;
  OwnWork& operator=(const OwnWork&) = delete;
  ~OwnWork();
  bool raised() const { return saved_.set(); }  // the program had an error in flight
  const TorchApi* torch() const { return torch_; }

 private:
  // In this order: the error comes back last.
  SavedError saved_;
  ThreadState& thread_;
  bool outer_inside_;
  const TorchApi* torch_;
  TorchFunctionOff functions_off_;
  TracerOff tracer_off_;
};

// forward, recompute, backward or optimizer, for an operator beginning now.
Phase current_phase(const TorchApi* torch, const ThreadState& thread);

}  // namespace opguard
