// A stand-in for a device runtime: events finish when the test says so.
#include <stddef.h>

static int pinned, events, finished, recorded;
static void* last_stream;

int cudaGetDeviceCount(int* count) {
  return *count = 1, 0;
}
int cudaHostRegister(void* data, size_t bytes, unsigned flags) {
  return (void)data, (void)bytes, (void)flags, ++pinned, 0;
}
int cudaHostUnregister(void* data) {
  return (void)data, --pinned, 0;
}
int cudaEventCreateWithFlags(void** event, unsigned flags) {
  return (void)flags, *event = (void*)(size_t)(++events), 0;
}
int cudaEventRecord(void* event, void* stream) {
  return (void)event, last_stream = stream, ++recorded, 0;
}
int cudaEventQuery(void* event) {
  return (size_t)event <= (size_t)finished ? 0 : 600;
}
int cudaEventDestroy(void* event) {
  return (void)event, 0;
}

void fake_finish(int up_to) {
  finished = up_to;
}
int fake_pinned(void) {
  return pinned;
}
int fake_recorded(void) {
  return recorded;
}
void* fake_last_stream(void) {
  return last_stream;
}
