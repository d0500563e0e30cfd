// A pool of threads that sleep between loops, in a process that may fork at any time.
//
//   parallel_for(100, 4, work)     the caller and three others each take the next number, until 100
//   a second loop meanwhile        its caller does all by itself: it never waits
//   fork                           the child has a null pool, and makes its own when it needs one
//
// Tasks are taken by an atomic counter, so a slow one holds no other up. The caller works, too:
// where no thread can be started, all is done all the same.
//
// Counterexample: to destroy the pool, or to unlock it in a child. Its mutex may be held by a
// thread that is not there; so the child leaves that copy alone.
//
// The cost: a wake and a sleep a thread, which is why tensors below kParallelBytes are not shared
// out.
#include "runtime/fingerprint/parallel.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace opguard {
namespace {

struct Pool {
  std::mutex in_use;  // held for a whole loop
  std::mutex mutex;   // guards what follows
  std::condition_variable wake, done;
  const std::function<void(size_t)>* work = nullptr;
  size_t tasks = 0;
  unsigned started = 0;
  unsigned wanted = 0;  // how many may still join the loop
  unsigned active = 0;
  std::atomic<size_t> next{0};

  void take_tasks(const std::function<void(size_t)>& task, size_t count) {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) task(i);
  }

  void serve() {
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [this] { return wanted > 0; });
      --wanted;
      ++active;
      const auto& task = *work;
      const size_t count = tasks;
      lock.unlock();
      take_tasks(task, count);
      lock.lock();
      if (--active == 0) done.notify_one();
    }
  }

  // Signals are for the program's own threads. The caller holds in_use.
  void start(unsigned threads) {
    if (started >= threads) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (; started < threads; ++started) std::thread([this] { serve(); }).detach();
    } catch (const std::system_error&) {  // a limit on threads: those there must do
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
};

// Never destroyed: its threads may outlive every static object. A child of fork has none of them,
// and its copy of the mutexes may be locked, so it leaves that copy alone.
std::atomic<Pool*> g_pool{nullptr};

// Before any thread can be in a loop. A fork while another thread is within a function's first
// initialisation would leave the child waiting for that thread for ever.
[[maybe_unused]] const int g_fork_watched =
    pthread_atfork(nullptr, nullptr, [] { g_pool.store(nullptr, std::memory_order_relaxed); });

Pool& pool() {
  Pool* current = g_pool.load(std::memory_order_acquire);
  if (current != nullptr) return *current;
  Pool* fresh = new Pool;
  if (g_pool.compare_exchange_strong(current, fresh)) return *fresh;
  delete fresh;
  return *current;
}

}  // namespace

void parallel_for(size_t tasks, unsigned threads, const std::function<void(size_t)>& work) {
  auto alone = [&] {
    for (size_t i = 0; i < tasks; ++i) work(i);
  };
  if (threads <= 1 || tasks <= 1) return alone();
  Pool& p = pool();
  std::unique_lock loop(p.in_use, std::try_to_lock);
  if (!loop.owns_lock()) return alone();
  const unsigned helpers = static_cast<unsigned>(tasks < threads ? tasks - 1 : threads - 1);
  p.start(helpers);
  {
    std::lock_guard lock(p.mutex);
    p.work = &work;
    p.tasks = tasks;
    p.next.store(0, std::memory_order_relaxed);
    p.wanted = helpers < p.started ? helpers : p.started;
  }
  p.wake.notify_all();
  p.take_tasks(work, tasks);
  std::unique_lock lock(p.mutex);
  p.wanted = 0;  // who has not woken by now finds nothing to do
  p.done.wait(lock, [&p] { return p.active == 0; });
}

unsigned parallel_threads() {
  Pool* current = g_pool.load(std::memory_order_acquire);
  if (current == nullptr) return 0;
  std::lock_guard loop(current->in_use);
  return current->started;
}

}  // namespace opguard
