// The recorder's part for steps: which are recorded, and which are kept for a watcher.
//
//   window 3..4     step 2: counted    3, 4: recorded    5: counted    6: the log is closed
//   ring of 2       3, 4 held          a watcher speaks in 4: both are a log, and 5 begins a ring
//
// Between the steps of a window only steps and backward passes are counted, and the numbers of
// collectives. What began in a step that is not recorded never comes into the log (add()). What
// began in one that is may end a step later, so the log is closed a step behind the window.
//
// Counterexample: a value carried over a pause. What was written meanwhile nobody saw.
#include <Python.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "record/keep_text.h"
#include "runtime/recorder/kept.h"
#include "runtime/recorder/recorder.h"
#include "runtime/recorder/tickets.h"
#include "runtime/watch/watch.h"

namespace opguard {

void Recorder::record_steps(const StepWindow& window, uint32_t first, bool marked,
                            PyObject* callback) {
  window_ = window;
  step_ = first;
  marked_steps_ = marked;
  at_window_end_ = PyCallable_Check(callback) ? Ref::borrow(callback).release() : nullptr;
  look_whether_active();
}

void Recorder::count_steps_in(const char* path) {
  progress_fd_ = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

// For someone who waits: what cannot be written is not worth a word.
void Recorder::write_progress() {
  if (progress_fd_ < 0) return;
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%10u\n", step_);
  (void)!pwrite(progress_fd_, text, size_t(size), 0);
}

// While a graph is captured, as what it does is replayed in steps to come.
void Recorder::look_whether_active() {
  active_ = recording_ && (window_.holds(step_) || capturing_);
}

void Recorder::begin_step() {
  const bool was_active = active_;
  if (was_active) record_buffers();  // what this step leaves of them
  if (ring_.on()) ask_watchers(false);
  // Of the window's last step something may have been in progress until now.
  if (window_.is_over(step_)) call_later(at_window_end_, "the log could not be closed");
  ++step_;
  micro_batch_ = 0;
  write_progress();
  look_whether_active();
  if (active_ && ring_.on()) {
    ring_.settle(tickets());
    ring_.begin_step(step_);
  }
  if (active_) {
    if (!was_active) storages().forget_all();  // what happened meanwhile nobody has seen
    if (opened_)
      record_state();
    else
      begin_log();
    if (!was_active) enter_window();
  }
  if (against_ != nullptr && was_active) tell_compared(step_ - 1);
  if (step_ > last_step_) call_later(at_last_step_, "the run could not be ended after its step");
}

bool Recorder::keep(std::string_view limits, std::string_view spool, std::string& error) {
  return spool.empty() ? parse_keep(limits, writer_limits_.segments, error)
                       : parse_spool(spool, writer_limits_.segments, error);
}

bool Recorder::hold_against(const std::string& index, PyObject* callback, std::string& error) {
  auto against = std::make_unique<StepsAgainst>();
  if (!against->open(index, error)) return false;
  against_ = against.release();  // as long as the writer
  compared_ = Ref::borrow(callback).release();
  writer_->compare_with(against_);
  return true;
}

// The state that the new step begins with is recorded, so the log's thread knows the old one whole.
void Recorder::tell_compared(uint32_t step) {
  writer_->settle();
  CompilerOff off;
  const uint32_t parted = against_->parted();
  const Ref answer(PyObject_CallFunction(compared_, "Ii", step,
                                         parted == kNone ? -1 : static_cast<int>(parted)));
  if (!answer) return fault("a comparison with an earlier run failed");
  if (answer.get() == Py_True) last_step_ = step;
}

// All of them: of what an earlier event says of some, nobody knows whether it still holds.
void Recorder::enter_window() {
  forget_buffers();
  record_buffers();
}

// Not from in here: the program's own work and ours are on the stack.
void Recorder::call_later(PyObject*& callback, const char* failure) {
  if (callback == nullptr) return;
  struct Later {
    PyObject* callback;
    const char* failure;
  };
  auto later = std::make_unique<Later>(callback, failure);
  if (Py_AddPendingCall(
          [](void* given) {
            std::unique_ptr<Later> later(static_cast<Later*>(given));
            Ref called(PyObject_CallNoArgs(later->callback));
            if (!called) recorder().fault(later->failure);
            return 0;
          },
          later.get()) != 0)
    return;  // asked again at the next step
  later.release();
  callback = nullptr;
}

void Recorder::hold_steps(uint32_t steps, PyObject* watchers) {
  ring_.begin(steps);
  watchers_ = Ref::borrow(watchers).release();
  ring_.begin_step(step_);
}

// watchers_(step, is the run over) -> None, or the folder and why.
void Recorder::ask_watchers(bool ending) {
  CompilerOff off;
  const Ref answer(PyObject_CallFunction(watchers_, "IO", step_, ending ? Py_True : Py_False));
  if (!answer) return fault("a watcher failed");
  if (!PyTuple_Check(answer.get()) || PyTuple_Size(answer.get()) != 2) return;
  const std::string folder(utf8(PyTuple_GetItem(answer.get(), 0)));
  write_ring(folder, utf8(PyTuple_GetItem(answer.get(), 1)), true);
}

void Recorder::write_ring(const std::string& folder, std::string_view why, bool whole) {
  if (!ring_.on() || ring_.empty()) return;
  if (!writer_->open(folder, rank_, world_, getpid(), wall_clock_ns())) {
    fault(writer_->error().c_str());
  } else {
    take_settings();
    StepWindow window = ring_.window();
    window.every = window_.every;
    std::map<std::string, std::string> own = {{"steps", window_text(window)},
                                              {"steps.kept", std::string(why)}};
    if (ring_.went_early() > 0) own["steps.without_room"] = std::to_string(ring_.went_early());
    if (faults_ > 0) own["opguard_faults"] = std::to_string(faults_);
    writer_->set(own);
    writer_->set(device_settings());
    ring_.write(*writer_);
    // Cut in the middle of a step it is a true beginning, as of a run that was killed.
    if (!(whole ? writer_->close() : writer_->flush())) fault("the log could not be closed");
    if (!whole) writer_->abandon();
  }
  ring_.clear();
  if (whole) delete writer_;  // one that was abandoned may still have its thread
  writer_ = new LogWriter(writer_limits_);
  writer_->complete_with(&tickets());
  forget_log();
}

bool Recorder::at_work() { return thread().inside || capturing_; }

bool Recorder::write_ring_now(const std::string& folder, std::string_view why) {
  if (at_work() || !ring_.on() || ring_.empty()) return false;
  OwnWork work;
  write_ring(folder, why, false);
  return true;
}

}  // namespace opguard
