#include "runtime/recorder/recorder.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "record/random_operator.h"
#include "runtime/entries/collective.h"
#include "runtime/fingerprint/fingerprint.h"
#include "runtime/recorder/kept.h"
#include "runtime/recorder/python_fingerprint.h"
#include "runtime/recorder/tickets.h"
#include "runtime/watch/watch.h"

namespace opguard {
namespace {

// Set in a forked child by the C library, so that every way to fork is seen.
std::atomic<bool> g_forked{false};

// Shape and span then tell how it lies, but for chance.
bool in_memory_order(const Elements& e) {
  int64_t inner = e.size;  // bytes that one step of the dimension before must pass over
  for (size_t d = e.shape.size(); d-- > 0;) {
    if (e.shape[d] == 0) return true;
    if (e.shape[d] == 1) continue;
    if (e.strides[d] < inner) return false;
    inner = e.strides[d] * e.shape[d];
  }
  return true;
}

uint64_t clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace

Recorder& recorder() {
  // Never destroyed: hooks may still fire while the interpreter shuts down.
  static Recorder* instance = new Recorder;
  return *instance;
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
  writer_ = new LogWriter;
  writer_->complete_with(&tickets());
  opened_ = false;
  ++generation_;
  recording_ = true;
}

bool Recorder::on() {
  if (!recording_) return false;
  if (g_forked.load(std::memory_order_relaxed)) reset_after_fork();
  return true;
}

void Recorder::before_fork() {
  if (recording_ && opened_) writer_->pause();
}

void Recorder::reset_after_fork() {
  g_forked.store(false, std::memory_order_relaxed);
  // The parent's threads do not exist here, and one may have held the mutex.
  new (&mutex_) std::mutex;
  writer_->abandon();
  devices_after_fork();
  tickets_after_fork();
  writer_ = new LogWriter;
  writer_->complete_with(&tickets());
  opened_ = false;
  capturing_.reset();
  graphs_.clear();
  located_.clear();
  occurrences_.clear();
  operators_.clear();
  // The operators that were running are the parent's, this thread's too: their ends are not reached
  // here, or end what is no more.
  running_.clear();
  thread().running.clear();
  thread().optimizers.clear();
  faults_ = 0;
  ++generation_;
  watch_after_fork();
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
  bool ok =
      writer_->open(dir_, rank_, world_, getpid(), static_cast<int64_t>(clock_ns(CLOCK_REALTIME)));
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
  ensure_open();
  take_settings();
  record_state();
}

void Recorder::begin_step() {
  record_buffers();  // what this step leaves of them
  ++step_;
  micro_batch_ = 0;
  record_state();
  if (at_last_step_ == nullptr || step_ <= last_step_) return;
  // Not from in here: the program's own work and ours are on the stack.
  if (Py_AddPendingCall(
          [](void* callback) {
            Ref called(PyObject_CallNoArgs(static_cast<PyObject*>(callback)));
            if (!called) recorder().fault("the run could not be ended after its step");
            return 0;
          },
          at_last_step_) == 0)
    at_last_step_ = nullptr;
}

void Recorder::end_after(uint32_t step, PyObject* callback) {
  last_step_ = step;
  Py_INCREF(callback);
  at_last_step_ = callback;
}

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

void Recorder::record_state() { record_states("<state>", Phase::forward, Py_False); }

void Recorder::record_generators(Phase phase, bool of_torch) {
  record_states(kGenerators, phase, of_torch ? Py_True : Py_False);
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
  e.begin = captures(thread, phase) ? kFirstCaptured + capturing_->events : writer_->events();
  e.start_ns = clock_ns(CLOCK_MONOTONIC);
  return e;
}

uint32_t Recorder::string(std::string_view text) {
  if (text.size() <= 8) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, text.data(), text.size());
    ShortString& known = short_strings_[bytes * 0x9e3779b97f4a7c15u >> 56];
    if (known.generation == generation_ && known.text == bytes && known.size == text.size())
      return known.index;
    std::lock_guard lock(mutex_);
    known = {generation_, bytes, static_cast<uint32_t>(text.size()), writer_->string(text)};
    return known.index;
  }
  KnownString& known = known_strings_[std::hash<std::string_view>()(text) % kKnown];
  if (known.generation == generation_ && known.text == text) return known.index;
  std::lock_guard lock(mutex_);
  known.index = writer_->string(text);
  known.text = text;
  known.generation = generation_;
  return known.index;
}

uint32_t Recorder::meta(const TensorView& view) {
  if (view.dtype_code == 0) {
    std::lock_guard lock(mutex_);
    return writer_->meta(view.meta);
  }
  uint64_t hash = view.dtype_code;
  for (int64_t n : view.meta.shape)
    hash = (hash ^ static_cast<uint64_t>(n)) * 0x9e3779b97f4a7c15u ^ hash >> 29;
  hash ^= static_cast<uint64_t>(view.dlpack_type * 64 + view.device_index) << 24;
  KnownMeta& known = known_metas_[(hash >> 20) % kKnown];
  if (known.generation == generation_ && known.dtype == view.dtype_code &&
      known.device == view.meta.device && known.shape == view.meta.shape)
    return known.index;
  std::lock_guard lock(mutex_);
  known.index = writer_->meta(view.meta);
  known.shape = view.meta.shape;
  known.dtype = view.dtype_code;
  known.device = view.meta.device;
  known.generation = generation_;
  return known.index;
}

Recorder::Site& Recorder::site(PyObject* id) {
  KnownId& known = known_ids_[(reinterpret_cast<uintptr_t>(id) >> 4) % kKnown];
  if (known.id == id) return *known.site;
  const std::string text(utf8(id));
  Site& site = sites_[text];
  site.text = text;
  Py_INCREF(id);
  Py_XDECREF(std::exchange(known.id, id));
  known.site = &site;
  return site;
}

// Of less than this reading costs no more than finding out that it is not needed; of far less, no
// more than finding out that the same event has read it.
static constexpr uint64_t kWorthCarrying = 4096, kWorthFinding = 256;
static_assert(kTinyBytes < kWorthFinding);

// A place for each of DLPack's codes of types: a number below 8, and 8, 16, 32 or 64 bits.
static constexpr size_t kTypePlaces = 128;
static constexpr size_t place_of_type(uint16_t code) {
  return (code >> 8) % 8u * 16u + (code & 0xffu) / 8u % 16u;
}
static_assert(place_of_type(0) < kTypePlaces && place_of_type(0xffff) < kTypePlaces);
static_assert(place_of_type(2 << 8 | 32) != place_of_type(0 << 8 | 32));

// Found by its code, where a type has one.
static NumberType number_type(const TensorView& view) {
  struct Known {
    uint16_t code = 0;
    NumberType type;
  };
  static Known all[kTypePlaces];
  if (view.dtype_code == 0) return {view.meta.dtype, view.elements.size};
  Known& known = all[place_of_type(view.dtype_code)];
  if (known.code != view.dtype_code)
    known = {view.dtype_code, NumberType(view.meta.dtype, view.elements.size)};
  return known.type;
}

// Other threads of the program go on meanwhile, as they do during the operators themselves: a
// loader's thread must not be held up by our reading. What an operator was given, its program
// cannot free before the operator has ended. A buffer of a module that works in another thread is
// nobody's here: `buffer.untyped_storage().resize_(0)` would take the memory from under us, so
// that thread waits.
Value Recorder::digest(const TensorView& view, Reading reading) {
  const unsigned threads = threads_for(view);
  const NumberType type = number_type(view);  // while no other thread looks it up
  Digest d;
  {
    std::optional<WhileReading> others;
    if (reading != Reading::aside) others.emplace(view);
    d = opguard::digest(view.elements, type, threads);
  }
  return {d.value,
          d.flat,
          d.pattern.value_or(0),
          d.pattern.has_value(),
          d.elements.has_value(),
          d.elements.value_or(0)};
}

// Where it is read on a device, a ticket.
Value Recorder::read(const TensorView& view, ThreadState& of, Reading reading) {
  if (view.device == nullptr) return digest(view, reading);
  const Launches::Stream& stream = of.launches.stream_of(view);
  Value value;
  value.stream = stream.number;
  value.ticket = of.launches.add(view, stream, graph_of_capture(stream));
  return value;
}

// What is repeated in a graph is what the graph itself has read.
bool Recorder::lasts(const Value& value, const TensorView& view, ThreadState& of) {
  if (view.device == nullptr) return value.there();
  if (value.there() || !tickets().lasts(value.ticket)) return false;
  const uint64_t graph = graph_of_capture(of.launches.stream_of(view));
  return graph == (value.ticket & Tickets::kOfGraph ? Tickets::graph_of(value.ticket) : 0);
}

// Fills in the block's number, and whether the value was carried over.
Value Recorder::value_of(const TensorView& view, PyObject* object, Reading reading, ThreadState& of,
                         Slot& slot) {
  Recent& recent = of.recent;
  const bool carries = mode_ != Mode::full;
  if (object == nullptr || reading == Reading::compiled) return read(view, of);
  const uint64_t bytes = view.content_bytes();
  if (carries && bytes < kWorthFinding && reading == Reading::usual && view.device == nullptr)
    return read(view, of, reading);
  const uint32_t meta = slot.meta;
  for (size_t i = 0; i < std::min(recent.count, Recent::kCount); ++i) {
    const Recent::Entry& e = recent.entries[i];
    if (e.tensor != object || e.version != view.version || e.meta != meta ||
        e.data != view.elements.data)
      continue;
    slot.storage = e.storage;
    // Its storage may have been declared written in between.
    if (carries && e.storage != 0)
      storages().remember(storages().place_of(object), object, view, meta, e.value);
    return e.value;
  }
  Storages::Place place;
  if (view.counted && (!carries || reading != Reading::usual || bytes >= kWorthCarrying))
    place = storages().place_of(object);
  slot.storage = place.number;
  Value value;
  const Value* known = nullptr;
  if (carries && reading == Reading::usual) known = storages().carried(place, object, view, meta);
  if (known != nullptr && lasts(*known, view, of)) {
    slot.flags |= kCarried;
    value = *known;
  } else {
    value = read(view, of, reading);
    if (carries) storages().remember(place, object, view, meta, value);
    recent.entries[recent.count++ % Recent::kCount] = {object, view.elements.data, view.version,
                                                       meta,   place.number,       value};
  }
  return value;
}

Slot Recorder::slot(const TensorView& view, SlotKind kind, uint16_t index, std::string_view name,
                    SlotFlags flags, PyObject* object, Reading reading, ThreadState* of) {
  Slot s;
  s.kind = kind;
  s.flags = flags;
  s.index = index;
  s.version = view.version;
  s.name = string(name);
  s.meta = meta(view);
  if (read_in_flight(view, s)) {
    // Another thread is writing these bytes.
  } else if (view.has_value()) {
    const Value value = value_of(view, object, reading, of ? *of : thread(), s);
    if (value.there()) {
      if (view.device != nullptr) s.flags |= kUnreadable;  // it could not be launched
      s.value = value.value;
      s.flat = value.flat;
      s.has_digest = value.has_digest;
      s.digest = value.digest;
      if (value.mask) {
        s.pattern = value.pattern;
        s.flags |= kMask;
      }
    } else {
      s.flags |= kPending;
      s.value = {value.ticket, 0};
      s.pattern = value.stream;
    }
    s.address = view.first_byte();
    s.size_bytes = view.span_bytes();
    if (!in_memory_order(view.elements)) s.flags |= kPermuted;
  } else {
    s.flags |= kUnreadable;
  }
  return s;
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
  bool failed_before = !writer_->error().empty();
  uint32_t index;
  {
    std::lock_guard lock(mutex_);
    if (is_operator(event)) {
      if (operators_.size() <= event.boundary) operators_.resize(event.boundary + size_t{1});
      event.occurrence = operators_[event.boundary][static_cast<size_t>(event.phase)]++;
    } else {
      event.occurrence = occurrences_[key_of(event)]++;
    }
    index = writer_->add(event, slots);
  }
  if (!failed_before && !writer_->error().empty()) fault(writer_->error().c_str());
  return writer_->error().empty() ? index : kNone;
}

void Recorder::lose(uint64_t records) {
  std::lock_guard lock(mutex_);
  writer_->lose(records);
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

bool Recorder::unlocated(const std::string& boundary) { return located_.insert(boundary).second; }

void Recorder::locate(const std::string& boundary, const Location& location) {
  std::lock_guard lock(mutex_);
  writer_->locate(boundary, location);
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
  if (!on()) return;
  if (opened_ && writer_->is_open()) {
    {
      OwnWork work;
      record_buffers();
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
  recording_ = false;
  close_devices();
}

OwnWork::OwnWork(ThreadState& thread)
    : thread_(thread),
      outer_inside_(std::exchange(thread_.inside, true)),
      torch_(torch_api()),
      functions_off_(torch_),
      tracer_off_(torch_) {
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
