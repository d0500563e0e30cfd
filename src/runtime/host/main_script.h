// runtime/host/main_script.h: the main script runs where CPython runs a plain one.
//
// Under the import hook CPython takes the script for a folder to import from
// (python/opguard/load/hook.py). It then calls runpy's _run_module_as_main(name, flag), from which
// the script's code is three levels of recursion away. During that one call a MainScript stands
// there, and runs the code itself.
//
//   plain:  <module>                                           1 level
//   runpy:  _run_module_as_main, _run_code, exec, <module>     4 levels
//   here:   <module>                                           1 level
#pragma once

#include "runtime/host/py.h"

namespace opguard {

// main_script(code, namespace): what to call; its arguments are runpy's and are not looked at.
PyObject* main_script(PyObject* self, PyObject* args);

bool init_main_script();

}  // namespace opguard
