/* A stand-in for NVIDIA's management library: two devices, the second of which does not tell how busy it is. */
#include <stdio.h>

struct utilization {
  unsigned gpu, memory;
};
struct memory {
  unsigned long long total, free, used;
};

int nvmlInit_v2(void) {
  return 0;
}
int nvmlShutdown(void) {
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  return *count = 2, 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  return *device = (void*)(unsigned long)(index + 1), 0;
}
int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  return snprintf(name, length, "Fake %d", (int)(unsigned long)device), 0;
}
int nvmlDeviceGetUtilizationRates(void* device, struct utilization* rates) {
  return device == (void*)1 ? (rates->gpu = 37, 0) : 3;
}
int nvmlDeviceGetMemoryInfo(void* device, struct memory* memory) {
  return (void)device, memory->total = 80000, memory->used = 77000, 0;
}
