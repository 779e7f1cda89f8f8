// Handlers for signals that this process gets. From any thread; a handler serves the whole process.
#pragma once

namespace stoker::os {

// `handler` runs on whichever thread the signal interrupts, so it may only do what signal-safety(7) allows. A system
// call that waits ends with EINTR: it is not restarted.
void catch_signal(int signal, void (*handler)(int)) noexcept;

bool is_signal_ignored(int signal) noexcept;  // as `nohup` leaves SIGHUP

}  // namespace stoker::os
