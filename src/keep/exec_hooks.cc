// The functions by which a process starts another program, in front of the C library's own. Each
// gives it the environment completed (keep/kept.h) and is otherwise the same call. A forked child
// that shares its parent's memory (vfork, posix_spawn, Python's subprocess) calls them too, so they
// work on their stack alone.
#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>

#include "keep/kept.h"

#define OPGUARD_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Environment = char* const*;

// The C library's function behind ours.
template <typename Function>
class Next {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}
  Function* find() {
    if (!found_) found_ = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
    return found_;
  }

 private:
  const char* name_;
  Function* found_ = nullptr;
};

using Execve = int(const char*, Environment, Environment);
using Fexecve = int(int, Environment, Environment);
using Execveat = int(int, const char*, Environment, Environment, int);
using Spawn = int(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                  Environment, Environment);

constinit Next<Execve> g_execve("execve"), g_execvpe("execvpe");
constinit Next<Fexecve> g_fexecve("fexecve");
constinit Next<Execveat> g_execveat("execveat");
constinit Next<Spawn> g_spawn("posix_spawn"), g_spawnp("posix_spawnp");
constinit Next<int(const char*)> g_system("system");
constinit Next<FILE*(const char*, const char*)> g_popen("popen");

}  // namespace

// `all`: the environment completed, in the caller's own frame.
#define OPGUARD_COMPLETED(environment)                      \
  size_t bytes = opguard::keep::missing_bytes(environment); \
  Environment all = bytes == 0 ? environment : opguard::keep::completed(environment, alloca(bytes))

// The arguments of execl and its like, as an array in this frame, with what follows their end.
#define OPGUARD_ARGUMENTS(first)                                           \
  va_list given;                                                           \
  va_start(given, first);                                                  \
  size_t count = 1;                                                        \
  while (va_arg(given, char*)) ++count;                                    \
  va_end(given);                                                           \
  auto** words = static_cast<char**>(alloca((count + 1) * sizeof(char*))); \
  va_start(given, first);                                                  \
  words[0] = const_cast<char*>(first);                                     \
  for (size_t i = 1; i <= count; ++i) words[i] = va_arg(given, char*)

static int no_such_function() {
  errno = ENOSYS;
  return -1;
}

OPGUARD_EXPORT int execve(const char* path, Environment words, Environment environment) noexcept {
  OPGUARD_COMPLETED(environment);
  auto* next = g_execve.find();
  return next ? next(path, words, all) : no_such_function();
}

OPGUARD_EXPORT int execv(const char* path, Environment words) noexcept {
  return execve(path, words, environ);
}

// With the search and the shell of glibc's execvp.
OPGUARD_EXPORT int execvpe(const char* file, Environment words, Environment environment) noexcept {
  OPGUARD_COMPLETED(environment);
  auto* next = g_execvpe.find();
  return next ? next(file, words, all) : no_such_function();
}

OPGUARD_EXPORT int execvp(const char* file, Environment words) noexcept {
  return execvpe(file, words, environ);
}

OPGUARD_EXPORT int execl(const char* path, const char* first, ...) noexcept {
  OPGUARD_ARGUMENTS(first);
  va_end(given);
  return execve(path, words, environ);
}

OPGUARD_EXPORT int execlp(const char* file, const char* first, ...) noexcept {
  OPGUARD_ARGUMENTS(first);
  va_end(given);
  return execvpe(file, words, environ);
}

OPGUARD_EXPORT int execle(const char* path, const char* first, ...) noexcept {
  OPGUARD_ARGUMENTS(first);
  auto environment = va_arg(given, Environment);
  va_end(given);
  return execve(path, words, environment);
}

OPGUARD_EXPORT int fexecve(int file, Environment words, Environment environment) noexcept {
  OPGUARD_COMPLETED(environment);
  auto* next = g_fexecve.find();
  return next ? next(file, words, all) : no_such_function();
}

OPGUARD_EXPORT int execveat(int folder, const char* path, Environment words,
                            Environment environment, int flags) noexcept {
  OPGUARD_COMPLETED(environment);
  auto* next = g_execveat.find();
  return next ? next(folder, path, words, all, flags) : no_such_function();
}

OPGUARD_EXPORT int posix_spawn(pid_t* child, const char* path,
                               const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes, Environment words,
                               Environment environment) {
  OPGUARD_COMPLETED(environment);
  auto* next = g_spawn.find();
  return next ? next(child, path, actions, attributes, words, all) : ENOSYS;
}

OPGUARD_EXPORT int posix_spawnp(pid_t* child, const char* file,
                                const posix_spawn_file_actions_t* actions,
                                const posix_spawnattr_t* attributes, Environment words,
                                Environment environment) {
  OPGUARD_COMPLETED(environment);
  auto* next = g_spawnp.find();
  return next ? next(child, file, actions, attributes, words, all) : ENOSYS;
}

// The C library starts these two's shell by itself. Never between vfork and exec.
OPGUARD_EXPORT int system(const char* command) {
  if (command) opguard::keep::complete_own();
  auto* next = g_system.find();
  return next ? next(command) : no_such_function();
}

OPGUARD_EXPORT FILE* popen(const char* command, const char* mode) {
  opguard::keep::complete_own();
  auto* next = g_popen.find();
  return next ? next(command, mode) : (no_such_function(), nullptr);
}

// dlsym is no call for a child that shares its parent's memory: all are found before main.
namespace opguard::keep {
__attribute__((visibility("hidden"))) void find_functions() {
  g_execve.find();
  g_execvpe.find();
  g_fexecve.find();
  g_execveat.find();
  g_spawn.find();
  g_spawnp.find();
  g_system.find();
  g_popen.find();
  dlerror();  // an older C library without one of them is no error of the program's
}
}  // namespace opguard::keep
