// support/guardian.h: what is left behind if this process is killed, and who clears it away.
//
// SIGKILL lets nobody clean up: the program that `opguard diff` runs would train on, and its
// temporary folder would stay for ever. A process of ours, forked before there is anything to lose,
// waits at a socket whose other end only this process holds. When that end closes, however this
// process has ended, it ends the children that are still named and removes the folders.
//
//   start_guardian();
//   guard_folder("/tmp/opguard-x1y2z3");   ...   release_folder("/tmp/opguard-x1y2z3");
//
// Where no process can be forked there is none, and everything is as without. Cost: one sleeping
// process, in a session of its own, with no descriptor of ours but the socket.
#pragma once

#include <sys/types.h>

#include <string>

namespace opguard {

// Once; further calls do nothing. To be called while this process has one thread.
void start_guardian();

// To be removed with what is in it.
void guard_folder(const std::string& path);
void release_folder(const std::string& path);

// To be ended: SIGTERM, and SIGKILL ten seconds later. group: with its process group, whose leader
// it is. May be called by the child itself between fork and exec: allocates nothing.
void guard_child(pid_t pid, bool group);
// Ended, and waited for: its number may be another process's from now on.
void release_child(pid_t pid);

}  // namespace opguard
