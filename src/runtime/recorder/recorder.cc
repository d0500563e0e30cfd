// The life of a process's log, and the counters that give an event its coordinates.
//
//   start()                 remembers where to; there is no file yet
//   the first event         the file, the settings, `<state>`: where the random numbers begin
//   an optimizer step       `<buffers>` that it changed; the step is counted; `<state>` again
//   fork                    the parent's writer is paused; the child forgets it, and its own log
//                           begins with the first event there
//   close()                 the last buffers, what the settings are now, the end
//   rest(), start()         the same, and another log of the same process begins (opguard.testing)
//
// Counterexample: a file made by start(). Every process that inherits the variable would leave one,
// the shells and compilers too; only those that record something do.
//
// Nothing is thrown to the program. fault() tells the first of our errors on stderr, counts them
// all, and the log says how many. The count of an operator is an array by boundary and phase; that
// of rarer events a map.
#include "runtime/recorder/recorder.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "record/generators.h"
#include "runtime/recorder/kept.h"
#include "runtime/recorder/sketches.h"
#include "runtime/recorder/tickets.h"
#include "runtime/recorder/values.h"
#include "runtime/watch/watch.h"

namespace opguard {
namespace {

// Set in a forked child by the C library, so that every way to fork is seen.
std::atomic<bool> g_forked{false};

uint64_t clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace

Recorder& make_recorder() {
  g_recorder = new Recorder;
  return *g_recorder;
}

void Recorder::start(const std::string& dir, int32_t rank, int32_t world, Mode mode,
                     PyObject* settings, PyObject* states) {
  static bool watching = false;
  if (!watching) {
    pthread_atfork([] { recorder().before_fork(); }, nullptr,
                   [] { g_forked.store(true, std::memory_order_relaxed); });
    watching = true;
  }
  if (recording_) return;
  dir_ = dir;
  rank_ = rank;
  world_ = world;
  mode_ = mode;
  Py_XINCREF(settings);
  settings_ = settings;
  Py_XINCREF(states);
  states_ = states;
  tickets().open();
  begin_writer();
  window_ = {};
  ring_.begin(0);
  step_ = micro_batch_ = 0;
  marked_steps_ = marked_micro_batches_ = false;
  recording_ = true;
  look_whether_active();
}

// Another log, of a run or of a process that begins.
void Recorder::begin_writer() {
  writer_ = new LogWriter(writer_limits_);
  writer_->complete_with(&tickets());
  forget_log();
  // The operators that were running are of the log before, this thread's too. Their ends are not
  // reached any more, or end what is no more.
  running_.clear();
  thread().running.clear();
  thread().optimizers.clear();
}

bool Recorder::alive() {
  if (!recording_) return false;
  if (g_forked.load(std::memory_order_relaxed)) reset_after_fork();
  return true;
}

void Recorder::before_fork() {
  if (recording_ && opened_) writer_->pause();
}

void Recorder::reset_after_fork() {
  g_forked.store(false, std::memory_order_relaxed);
  writer_->abandon();
  devices_after_fork();
  tickets_after_fork();
  begin_writer();
  look_whether_active();
  watch_after_fork();
}

// What is next is the first of another log.
void Recorder::forget_log() {
  opened_ = false;
  capturing_.reset();
  graphs_.clear();
  located_.clear();
  occurrences_.clear();
  operators_.clear();
  faults_ = 0;
  ++generation_;
}

ThreadState& Recorder::thread() {
  static thread_local ThreadState* state = nullptr;
  if (state == nullptr) {
    state = new ThreadState;  // some bytes a thread; a destructor could run after the interpreter
    state->number = threads_++;
  }
  return *state;
}

bool Recorder::ensure_open() {
  if (opened_) return writer_->is_open();
  opened_ = true;
  bool ok = writer_->open(dir_, rank_, world_, getpid(), wall_clock_ns());
  if (!ok) fault(writer_->error().c_str());
  return ok;
}

void Recorder::take_settings() {
  if (settings_ == nullptr) return;
  CompilerOff off;
  Ref dict(PyObject_CallNoArgs(settings_));
  if (!dict || !PyDict_Check(dict.get())) {
    fault("the settings could not be read");
    return;
  }
  std::map<std::string, std::string> settings;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict.get(), &at, &key, &value);)
    settings[std::string(utf8(key))] = utf8(value);
  writer_->set(settings);
}

// At the first event: how the process was set up, and where its random numbers begin.
void Recorder::begin_log() {
  if (ring_.on()) {
    opened_ = true;
  } else {
    ensure_open();
    take_settings();
  }
  record_state();
}

void Recorder::end_after(uint32_t step, PyObject* callback) {
  last_step_ = step;
  Py_INCREF(callback);
  at_last_step_ = callback;
}

int64_t Recorder::wall_clock_ns() { return static_cast<int64_t>(clock_ns(CLOCK_REALTIME)); }

uint64_t Recorder::clock() { return clock_ns(CLOCK_MONOTONIC); }

void Recorder::mark_step() {
  if (note_in_capture(CapturedGraph::Kind::marked_step)) return;
  bool counted = !std::exchange(marked_steps_, true) && step_ > 0;
  if (!counted) begin_step();
}

void Recorder::mark_micro_batch() {
  if (note_in_capture(CapturedGraph::Kind::marked_micro_batch)) return;
  bool counted = !std::exchange(marked_micro_batches_, true) && micro_batch_ > 0;
  if (!counted) ++micro_batch_;
}

void Recorder::record_state() { record_states(kStepState, Phase::forward, Py_False); }

void Recorder::record_generators(Phase phase, bool of_torch) {
  record_states(kGenerators, phase, of_torch ? Py_True : Py_False);
}

void Recorder::record_tensors(std::string_view boundary, PyObject* items) {
  if (capturing_) return;
  Event event = open_event(boundary, EventKind::state, Phase::forward);
  Collector in(torch_api(), SlotKind::in, 0xffff);
  for (Py_ssize_t i = 0, n = PyList_Size(items); i < n; ++i) {
    PyObject* item = PyList_GetItem(items, i);
    PyObject* declared = PyTuple_GetItem(item, 2);
    sketches().declare(declared == Py_None ? "" : utf8(declared));
    in.add_tensors(utf8(PyTuple_GetItem(item, 0)), PyTuple_GetItem(item, 1), kModelValue);
  }
  sketches().declare("");
  if (in.beyond() > 0) lose(in.beyond());
  commit(event, in.slots());
}

void Recorder::record_states(std::string_view boundary, Phase phase, PyObject* only_torch) {
  // The state of a generator that a graph uses is the graph's while it is captured.
  if (states_ == nullptr || capturing_) return;
  CompilerOff off;
  Ref dict(PyObject_CallFunctionObjArgs(states_, only_torch, nullptr));
  if (!dict || !PyDict_Check(dict.get())) return fault("random states could not be read");
  Event event = open_event(boundary, EventKind::state, phase);
  std::vector<Slot> slots;
  const TorchApi* torch = torch_api();
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(dict.get(), &at, &key, &value);) {
    TensorView view;
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (torch != nullptr && torch->is_tensor(value)) {
      view = view_tensor(*torch, value);
    } else if (PyBytes_AsStringAndSize(value, &data, &size) == 0) {
      view.meta = {"uint8", "cpu", {size}};
      view.elements = {data, 1, {size}, {1}};
      view.readable = true;
    } else {
      PyErr_Clear();
      continue;
    }
    slots.push_back(slot(view, SlotKind::in, static_cast<uint16_t>(slots.size()), utf8(key), 0));
    slots.back().address = 0;  // a copy of ours, no memory of the program
  }
  commit(event, slots);
}

Event Recorder::open_event(std::string_view boundary, EventKind kind, Phase phase) {
  return open_event(boundary, kind, phase, thread());
}

Event Recorder::open_event(std::string_view boundary, EventKind kind, Phase phase,
                           const ThreadState& thread) {
  if (!opened_) begin_log();
  return event_now(string(boundary), kind, phase, thread);
}

Event Recorder::open_event(Site& site, EventKind kind, Phase phase, const ThreadState& thread) {
  if (!opened_) begin_log();
  if (site.generation != generation_) {
    site.generation = generation_;
    site.string = string(site.text);
    site.located = false;
  }
  return event_now(site.string, kind, phase, thread);
}

Event Recorder::event_now(uint32_t boundary, EventKind kind, Phase phase,
                          const ThreadState& thread) {
  Event e;
  e.boundary = boundary;
  e.kind = kind;
  e.phase = phase;
  e.step = step_;
  e.micro_batch = micro_batch_;
  e.thread = thread.number;
  e.begin = captures(thread, phase) ? kFirstCaptured + capturing_->events : events();
  e.start_ns = clock_ns(CLOCK_MONOTONIC);
  return e;
}

uint32_t Recorder::next_occurrence(const Event& event) const {
  if (is_operator(event))
    return event.boundary < operators_.size()
               ? operators_[event.boundary][static_cast<size_t>(event.phase)]
               : 0;
  auto found = occurrences_.find(key_of(event));
  return found == occurrences_.end() ? 0 : found->second;
}

uint32_t Recorder::commit(Event& event, const std::vector<Slot>& slots) {
  event.end_ns = clock_ns(CLOCK_MONOTONIC);
  if (!graphs_.empty()) [[unlikely]] {
    if (capturing_ && event.begin >= kFirstCaptured) return commit_captured(event, slots);
    if (left_capture(event, slots)) {
      std::vector<Slot> own = slots;
      leave_capture(event, own);
      return add(event, own);
    }
  }
  return add(event, slots);
}

uint32_t Recorder::add(Event& event, const std::vector<Slot>& slots) {
  // It began outside of the window.
  if (!window_.holds(event.step)) return kNone;
  const bool failed_before = !writer_->error().empty();
  if (is_operator(event)) {
    if (operators_.size() <= event.boundary) operators_.resize(event.boundary + size_t{1});
    event.occurrence = operators_[event.boundary][static_cast<size_t>(event.phase)]++;
  } else {
    event.occurrence = occurrences_[key_of(event)]++;
  }
  if (ring_.on()) {
    const std::string sketched = sketches().on() ? sketches().entry(slots, event) : std::string();
    return ring_.add(event, slots, sketched);
  }
  const uint32_t index = sketches().on()
                             ? writer_->add(event, slots, sketches().entry(slots, event))
                             : writer_->add(event, slots);
  if (!failed_before && !writer_->error().empty()) fault(writer_->error().c_str());
  return writer_->error().empty() ? index : kNone;
}

void Recorder::lose(uint64_t records) {
  if (!ring_.on()) writer_->lose(records);
}

void Recorder::fault(const char* what) {
  if (faults_++ == 0 && !told_) {
    told_ = true;
    Ref text;
    if (PyErr_Occurred()) {
      PyObject *type, *value, *traceback;
      PyErr_Fetch(&type, &value, &traceback);
      Ref t(type), v(value), b(traceback);
      if (value) text = Ref(PyObject_Str(value));
    }
    PyErr_Clear();
    std::string why(utf8(text.get()));
    PySys_WriteStderr(
        "opguard: warning: %.300s%s%.300s; the run goes on, what is lost is counted\n", what,
        why.empty() ? "" : ": ", why.c_str());
  }
  PyErr_Clear();
}

uint64_t Recorder::enter(ThreadState& thread, const std::string& boundary) {
  uint64_t serial = ++serial_;
  thread.running.push_back({&boundary, serial, false, {}});
  running_.push_back({&boundary, serial, false, {}});
  return serial;
}

void Recorder::leave(ThreadState& thread, uint64_t serial) {
  auto drop = [serial](std::vector<Running>& list) {
    for (size_t i = list.size(); i-- > 0;) {
      if (list[i].serial != serial) continue;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  };
  drop(thread.running);
  drop(running_);
  // A step that raised never reached its post hook.
  while (!thread.optimizers.empty() && thread.optimizers.back().depth > thread.running.size())
    thread.optimizers.pop_back();
}

std::string Recorder::innermost(const ThreadState& thread, std::string_view fallback) {
  if (!thread.running.empty()) return *thread.running.back().boundary;
  if (!running_.empty()) return *running_.back().boundary;
  return std::string(fallback);
}

void Recorder::close() {
  if (!alive()) return;
  end_log();
  close_devices();
}

void Recorder::rest() {
  if (!alive()) return;
  end_log();
  delete std::exchange(writer_, nullptr);
  Py_CLEAR(settings_);
  Py_CLEAR(states_);
}

void Recorder::end_log() {
  if (ring_.on() && opened_) {
    OwnWork work;
    if (active_) record_buffers();
    ask_watchers(true);
    ring_.begin(0);
  }
  if (opened_ && writer_->is_open()) {
    {
      OwnWork work;
      if (active_) record_buffers();
    }
    take_settings();
    writer_->set(watch_settings());
    writer_->set(device_settings());
    if (faults_ > 0) writer_->set({{"opguard_faults", std::to_string(faults_)}});
    tickets().close();
    bool whole = writer_->close();
    // Perhaps it was only met now: the writer's thread has no way to tell.
    if (!writer_->error().empty()) fault(writer_->error().c_str());
    if (!whole) fault("the log could not be closed");
  }
  if (opened_ && writer_->lost() > 0)
    PySys_WriteStderr("opguard: %llu of %llu records were lost\n",
                      static_cast<unsigned long long>(writer_->lost()),
                      static_cast<unsigned long long>(writer_->made()));
  recording_ = active_ = false;
}

OwnWork::OwnWork(ThreadState& thread)
    : thread_(thread),
      outer_inside_(std::exchange(thread_.inside, true)),
      torch_(torch_api()),
      functions_off_(torch_, thread_.functions_off),
      tracer_off_(torch_, thread_.tracing) {
  if (!outer_inside_) {
    thread_.recent.count = 0;
    thread_.launches.begin();
  }
}

OwnWork::~OwnWork() {
  if (!outer_inside_) {
    try {
      thread_.launches.launch();
    } catch (const std::exception& e) {
      recorder().fault(e.what());
    }
  }
  if (PyErr_Occurred()) recorder().fault("an event could not be recorded");
  thread_.inside = outer_inside_;
}

Phase current_phase(const TorchApi* torch, const ThreadState& thread) {
  if (torch != nullptr && in_backward(*torch))
    return grad_enabled(*torch) ? Phase::recompute : Phase::backward;
  bool stepping = !thread.optimizers.empty() && thread.optimizers.back().closures == 0;
  return stepping ? Phase::optimizer : Phase::forward;
}

}  // namespace opguard
