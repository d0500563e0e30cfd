// The recorder's part for graphs of a device: events while one is captured, and its replays.
//
//   capture     relu, mul         noted in the graph; nothing goes to the log, since nothing ran
//   replay      launched          relu and mul go to the log, with the step and tickets of now
//   replay      launched          again, with other tickets
//
// A slot's ticket in the graph is an index. A replay gets as many tickets at once, and the k-th
// slot has the first one plus k. What was read before the capture is carried: it is what it was
// then.
//
// Counterexample: an event that begins in a capture and ends behind it. Its values would be those
// of a graph that runs later, so they are unreadable (leave_capture).
//
// A graph that is captured into another one is not announced at each replay, and has no events.
#include <algorithm>

#include "runtime/recorder/captured_graph.h"
#include "runtime/recorder/recorder.h"
#include "runtime/recorder/tickets.h"

namespace opguard {
namespace {

constexpr uint32_t kMaxGraphs = 1 << 11, kMaxEvents = 1 << 20;  // that an index can tell

uint32_t captured_index(const CapturedGraph& graph, uint32_t event) {
  // The last one would be kNone.
  if (graph.number >= kMaxGraphs - 1 || event >= kMaxEvents) return kNone;
  return kCapturedIndex | graph.number << 20 | event;
}

// The stream on which the graph is launched: torch's choice, not the one it was captured on.
uint32_t current_stream_like(uint32_t captured) {
  const Device* device = nullptr;
  int index = 0;
  tickets().device_of(captured, device, index);
  return tickets().stream(device, index, current_stream(device->type, 0, index));
}

bool is_of_graph(const Slot& slot) {
  return (slot.flags & kPending) && (slot.value.h & Tickets::kOfGraph);
}

}  // namespace

std::shared_ptr<CapturedGraph> Recorder::begin_capture() {
  if (capturing_) return nullptr;  // torch captures one at a time
  if (!opened_) begin_log();
  auto graph = std::make_shared<CapturedGraph>();
  graph->number = static_cast<uint32_t>(graphs_.size());
  graph->thread = thread().number;
  graph->generation = generation_;
  graphs_.push_back(graph);
  capturing_ = graph;
  look_whether_active();
  return graph;
}

void Recorder::end_capture(const std::shared_ptr<CapturedGraph>& graph) {
  graph->open = false;
  if (capturing_ == graph) capturing_.reset();
  look_whether_active();
}

bool Recorder::captures(const ThreadState& thread, Phase phase) const {
  // A backward pass runs in the engine's own thread.
  return capturing_ && (thread.number == capturing_->thread || phase == Phase::backward ||
                        phase == Phase::recompute);
}

uint64_t Recorder::graph_of_capture(const Launches::Stream& stream) {
  if (stream.capture == 0 || !capturing_) return 0;
  if (capturing_->tickets == 0) capturing_->tickets = tickets().open_graph(stream.device);
  return capturing_->tickets;
}

bool Recorder::note_in_capture(CapturedGraph::Kind kind) {
  if (!capturing_) return false;
  capturing_->entries.push_back({kind, {}, {}});
  return true;
}

uint32_t Recorder::commit_captured(const Event& event, const std::vector<Slot>& slots) {
  CapturedGraph& graph = *capturing_;
  graph.entries.push_back({CapturedGraph::Kind::event, event, slots});
  return captured_index(graph, graph.events++);
}

bool Recorder::left_capture(const Event& event, const std::vector<Slot>& slots) {
  return event.begin >= kFirstCaptured || is_captured(event.forward) ||
         std::any_of(slots.begin(), slots.end(), is_of_graph);
}

void Recorder::leave_capture(Event& event, std::vector<Slot>& slots) const {
  event.begin = std::min<uint64_t>(event.begin, events());
  if (is_captured(event.forward)) event.forward = replayed_index(event.forward);
  for (Slot& slot : slots) {
    if (!is_of_graph(slot)) continue;
    slot.flags = static_cast<SlotFlags>((slot.flags & ~(kPending | kCarried)) | kUnreadable);
    slot.value = {};
    slot.flat = slot.pattern = 0;
  }
}

uint32_t Recorder::replayed_index(uint32_t captured) const {
  const uint32_t number = (captured & ~kCapturedIndex) >> 20, event = captured & (kMaxEvents - 1);
  std::shared_ptr<CapturedGraph> graph = number < graphs_.size() ? graphs_[number].lock() : nullptr;
  if (!graph || event >= graph->replayed.size()) return kNone;
  return graph->replayed[event];
}

Recorder::Replay Recorder::begin_replay(const std::shared_ptr<CapturedGraph>& graph) {
  Replay replay;
  // In another capture it becomes a part of that one, whose replays nobody announces to it.
  if (graph->open || capturing_ || graph->generation != generation_) return replay;
  replay.begun = true;
  for (const CapturedGraph::Entry& entry : graph->entries)
    for (const Slot& slot : entry.slots) {
      if (!is_of_graph(slot) || replay.stream != 0) continue;
      replay.stream = static_cast<uint32_t>(slot.pattern);
    }
  if (replay.stream != 0) replay.stream = current_stream_like(replay.stream);
  if (graph->tickets != 0) replay.first = tickets().replayed(graph->tickets, replay.stream);
  return replay;
}

void Recorder::end_replay(const std::shared_ptr<CapturedGraph>& graph, const Replay& replay,
                          bool failed) {
  if (!replay.begun) return;
  // Its kernels write what they were captured with, and count no versions.
  storages().forget_all();
  if (failed) {
    if (replay.first != 0) tickets().not_replayed(graph->tickets);
    return;
  }
  if (graph->generation != generation_) return;
  if (!opened_) begin_log();
  std::vector<uint64_t> begins;  // of each event: how many were in the log before it
  std::vector<uint64_t> starts;  // of each event: when it began, after those before it had ended
  graph->replayed.assign(graph->events, kNone);
  std::vector<Slot> slots;
  for (const CapturedGraph::Entry& entry : graph->entries) {
    switch (entry.kind) {
      case CapturedGraph::Kind::backward:
        count_backward();
        continue;
      case CapturedGraph::Kind::step:
        count_step();
        continue;
      case CapturedGraph::Kind::marked_step:
        mark_step();
        continue;
      case CapturedGraph::Kind::marked_micro_batch:
        mark_micro_batch();
        continue;
      case CapturedGraph::Kind::event:
        break;
    }
    Event event = entry.event;
    slots = entry.slots;
    event.step = step_;
    event.micro_batch = micro_batch_;
    if (event.thread == graph->thread) event.thread = thread().number;
    const uint64_t begin = event.begin - kFirstCaptured, next = begins.size();
    begins.push_back(events());
    event.begin = begin < next ? begins[begin] : begins.back();
    starts.push_back(begin < next ? starts[begin] : clock());
    event.start_ns = starts.back();
    if (is_captured(event.forward)) event.forward = replayed_index(event.forward);
    for (Slot& slot : slots) {
      if (is_of_graph(slot)) {
        slot.value.h = replay.first + Tickets::index_in_graph(slot.value.h);
        slot.pattern = replay.stream;
        if (slot.flat != 0) slot.flat = replay.first + Tickets::index_in_graph(slot.flat);
        if (replay.first != 0) continue;
        slot.flags = static_cast<SlotFlags>((slot.flags & ~kPending) | kUnreadable);
        slot.value = {};
        slot.flat = slot.pattern = 0;
      } else if (!(slot.flags & kUnreadable)) {
        slot.flags |= kCarried;  // what it was when the graph was captured
      }
    }
    graph->replayed[next] = commit(event, slots);
  }
}

void Recorder::forget_graph(CapturedGraph& graph) {
  if (graph.tickets != 0 && graph.generation == generation_) tickets().close_graph(graph.tickets);
  if (capturing_.get() != &graph) return;
  capturing_.reset();
  look_whether_active();
}

}  // namespace opguard
