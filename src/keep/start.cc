// The library opguard_keep.so: brings the package into every Python below a command, whatever its
// launch script makes of PYTHONPATH.
//
// A Python that can import torch loads shared libraries, so the loader's LD_PRELOAD reaches it.
// What runs here, before main, puts the boot folder in front of the script's own PYTHONPATH:
//   export PYTHONPATH=/megatron:$PYTHONPATH      the shell sees its own PYTHONPATH only
//   python train.py                              here: PYTHONPATH=<boot>:/megatron:
// boot/sitecustomize.py takes it out again before the program's first line; the user's value waits
// in OPGUARD_PYTHONPATH until then. Not reached are processes that the loader preloads nothing
// into: setuid programs such as sudo, and static ones. Nor is what they start with an environment
// of their own. Nor are other machines, and containers that do not have this file.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "keep/kept.h"
#include "keep/python_flags.h"

namespace opguard::keep {

void find_functions();

namespace {

// Every CPython and PyPy exports one of them, in the program itself or in a library linked to it.
bool is_python() {
  for (const char* name : {"Py_BytesMain", "Py_Main", "pypy_main_startup"})
    if (dlsym(RTLD_DEFAULT, name)) return true;
  dlerror();
  return false;
}

// One file a process, read by preflight/reach.cc where nothing was recorded.
void note_unreached(char flag, int argc, char** argv) {
  const char* folder = std::getenv("OPGUARD_TRACE");
  if (!folder || !*folder) folder = std::getenv("OPGUARD_LOG");
  if (!folder || !*folder) return;
  char path[4096], text[4096];
  if (std::snprintf(path, sizeof path, "%s/unreached-%ld.txt", folder, long(getpid())) >=
      int(sizeof path))
    return;
  int size = std::snprintf(text, sizeof text, "-%c", flag);
  for (int i = 0; i < argc && size < int(sizeof text); ++i)
    size += std::snprintf(text + size, sizeof text - size, "%c%s", i ? ' ' : '\n', argv[i]);
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return;
  (void)!write(file, text, size < int(sizeof text) ? size : sizeof text - 1);
  close(file);
}

void enter_python() {
  const char *boot = std::getenv("OPGUARD_BOOT"), *path = std::getenv("PYTHONPATH");
  if (!boot || !*boot) return;
  size_t length = std::strlen(boot);
  // Of a parent that has a Python linked and never ran it.
  if (path && std::strncmp(path, boot, length) == 0 && (path[length] == 0 || path[length] == ':'))
    return;
  size_t size = length + 1 + (path ? std::strlen(path) : 0) + 1;
  auto* text = static_cast<char*>(std::malloc(size));
  if (!text) return;
  // An empty PYTHONPATH means none; an empty entry in one, the working directory.
  std::snprintf(text, size, path && *path ? "%s:%s" : "%s", boot, path);
  if (path)
    setenv("OPGUARD_PYTHONPATH", path, 1);
  else
    unsetenv("OPGUARD_PYTHONPATH");
  setenv("PYTHONPATH", text, 1);
  std::free(text);
}

__attribute__((constructor)) void start(int argc, char** argv, char** environment) {
  find_functions();
  take(environment);
  if (!std::getenv(kLibraries) || !is_python()) return;
  if (char flag = isolating_flag(argc, argv))
    note_unreached(flag, argc, argv);
  else
    enter_python();
}

}  // namespace
}  // namespace opguard::keep
