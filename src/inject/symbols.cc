#include "inject/symbols.h"

#include <dlfcn.h>

#include <initializer_list>

#include "inject/driver_hooks.h"

// dlsym's answer depends on who asks for RTLD_DEFAULT and RTLD_NEXT (null and -1). Those calls must
// reach the C library as the caller's own. So they are jumped to, before any frame of ours. A named
// handle's answer does not: those go through opguard_symbol_of_handle.
extern "C" {
// The C library's dlsym, found at the first call: other preloaded libraries may call before our
// constructors run.
__attribute__((visibility("hidden"))) void* opguard_next_dlsym = nullptr;

__attribute__((visibility("hidden"))) void opguard_find_dlsym() {
  // The version a symbol got when libdl became part of libc, and each architecture's first.
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"})
    if (!opguard_next_dlsym) opguard_next_dlsym = dlvsym(RTLD_NEXT, "dlsym", version);
}

__attribute__((visibility("hidden"))) void* opguard_symbol_of_handle(void* handle,
                                                                     const char* name) {
  void* found = opguard::symbol_of(handle, name);
  return found ? opguard::hooked_driver_symbol(name, found) : nullptr;
}
}

// dlsym(handle, name). Of null and -1, and of nothing else, handle + 1 is at most 1 (unsigned).
//
//   dlsym(RTLD_NEXT, "malloc")         a jump to the C library's, which sees who called
//   dlsym(libcuda, "cuLaunchKernel")   a jump to opguard_symbol_of_handle, which gives ours
//
// Registers that hold arguments are as they were in both cases.
#if defined(__x86_64__)
asm(R"(
  .text
  .globl dlsym
  .type dlsym, @function
dlsym:
  endbr64
  leaq 1(%rdi), %rax
  cmpq $1, %rax
  ja opguard_symbol_of_handle
  cmpq $0, opguard_next_dlsym(%rip)
  jne 1f
  pushq %rdi
  pushq %rsi
  subq $8, %rsp
  call opguard_find_dlsym
  addq $8, %rsp
  popq %rsi
  popq %rdi
1:
  jmpq *opguard_next_dlsym(%rip)
  .size dlsym, .-dlsym
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .globl dlsym
  .type dlsym, %function
dlsym:
  add x9, x0, #1
  cmp x9, #1
  b.ls 2f
  b opguard_symbol_of_handle
2:
  adrp x9, opguard_next_dlsym
  ldr x10, [x9, #:lo12:opguard_next_dlsym]
  cbnz x10, 1f
  stp x29, x30, [sp, #-32]!
  stp x0, x1, [sp, #16]
  bl opguard_find_dlsym
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  adrp x9, opguard_next_dlsym
  ldr x10, [x9, #:lo12:opguard_next_dlsym]
1:
  br x10
  .size dlsym, .-dlsym
)");
#endif

namespace opguard {

// For handles whose answer does not depend on who asks, and for RTLD_NEXT: the one that asks is
// this library then.
void* symbol_of(void* handle, const char* name) {
  if (!opguard_next_dlsym) opguard_find_dlsym();
  auto real = reinterpret_cast<void* (*)(void*, const char*)>(opguard_next_dlsym);
  return real ? real(handle, name) : nullptr;
}

void* next_symbol(const char* name, const void* caller) {
  if (void* found = symbol_of(RTLD_NEXT, name)) return found;
  dlerror();  // what we did not find is no error of the program's
  // Python loads torch's libraries, and with them CUDA's, out of the global scope.
  Dl_info object;
  if (!dladdr(caller, &object) || !object.dli_fname) return nullptr;
  void* handle = dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void* found = handle ? symbol_of(handle, name) : nullptr;
  if (handle) dlclose(handle);
  if (!found) dlerror();
  return found;
}

}  // namespace opguard
