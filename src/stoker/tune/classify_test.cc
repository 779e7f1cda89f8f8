#include "stoker/tune/classify.h"

#include <csignal>
#include <set>

#include <gtest/gtest.h>

namespace stoker::tune {
namespace {

// Short excerpts of public reports; `source` is the thread on GitHub.
struct Seen {
  const char* source;
  Status status;
  const char* kind;
  const char* text;
};

// Excerpts of what people reported. Put together from a title or a format string: LLaVA#392, mmsegmentation#3294,
// pytorch#11985; from two lines: nccl#425.
constexpr Seen kSeen[] = {
    // device memory
    {"Comfy-Org/ComfyUI#9529", Status::oom_device, "unexplained",
     "HIP out of memory. Tried to allocate 432.00 MiB. GPU 0 has a total capacity of 15.92 GiB of which 7.12 GiB is "
     "free. "
     "Of the allocated memory 8.08 GiB is allocated by PyTorch, and 321.96 MiB is reserved by PyTorch but "
     "unallocated."},
    {"Tongyi-MAI/Z-Image#103", Status::oom_device, "",
     "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.88 GiB. GPU 0 has a total capacity of 23.98 GiB "
     "of "
     "which 1.70 GiB is free. Of the allocated memory 21.65 GiB is allocated by PyTorch, and 279.78 MiB is reserved by "
     "PyTorch but unallocated."},
    {"ROCm/TheRock#2118", Status::oom_device, "capped",
     "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 255.98 GiB "
     "of "
     "which 244.65 GiB is free. 1.05 GiB allowed; Of the allocated memory 1017.01 MiB is allocated by PyTorch"},
    {"ROCm/TheRock#1054", Status::oom_device, "",
     "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 16.00 GiB. GPU 0 has a total capacity of 15.24 GiB "
     "of "
     "which 15.09 GiB is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by "
     "PyTorch "
     "but unallocated."},
    {"pytorch/pytorch#175431", Status::oom_device, "unexplained",
     "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 MiB. GPU 7 has a total capacity of 287.98 GiB "
     "of "
     "which 203.49 GiB is free. Of the allocated memory 68.63 GiB is allocated by PyTorch, and 14.93 GiB is reserved "
     "by "
     "PyTorch but unallocated."},
    {"ROCm/TheRock#4598", Status::oom_device, "unexplained",
     "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 16.00 GiB. GPU 0 has a total capacity of 15.49 GiB "
     "of "
     "which 84.98 GiB is free. Of the allocated memory 1.67 GiB is allocated by PyTorch"},
    {"kyuz0/amd-strix-halo-image-video-toolboxes#3", Status::oom_device, "",
     "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 3.31 GiB. GPU 0 has a total capacity of 128.00 GiB "
     "of "
     "which 780.24 MiB is free. Of the allocated memory 57.70 GiB is allocated by PyTorch, and 75.82 MiB is reserved "
     "by "
     "PyTorch but unallocated."},
    {"OPIXray-author/OPIXray#5", Status::oom_device, "",
     "CUDA out of memory. Tried to allocate 264.00 MiB (GPU 0; 2.00 GiB total capacity; 788.51 MiB already allocated; "
     "145.93 MiB free; 1.02 GiB reserved in total by PyTorch)"},
    {"rshaojimmy/MADDoG#11", Status::oom_device, "fragmented",
     "RuntimeError: CUDA out of memory. Tried to allocate 2.87 GiB (GPU 0; 14.76 GiB total capacity; 8.77 GiB already "
     "allocated; 19.75 MiB free; 13.71 GiB reserved in total by PyTorch)"},
    {"2KangHo/vdsr_pytorch#2", Status::oom_device, "fragmented",
     "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 15.90 GiB total capacity; 13.13 GiB "
     "already "
     "allocated; 415.88 MiB free; 14.80 GiB reserved in total by PyTorch)"},
    {"pytorch/pytorch#59778", Status::oom_device, "",
     "CUDA out of memory. Tried to allocate 2.26 GiB (GPU 0; 6.00 GiB total capacity; 781.59 MiB already allocated; "
     "3.03 "
     "GiB free; 1.24 GiB reserved in total by PyTorch)"},
    {"pytorch/pytorch#111363", Status::oom_device, "unexplained",
     "(OutOfMemoryError) CUDA out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacty of 79.15 GiB of "
     "which "
     "38.09 GiB is free. Including non-PyTorch memory, this process has 41.06 GiB memory in use."},
    {"murong-xu/CADS#4", Status::oom_device, "",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.78 GiB. GPU 0 has a total capacity of 31.47 GiB "
     "of "
     "which 12.73 GiB is free. Including non-PyTorch memory, this process has 18.73 GiB memory in use. Of the "
     "allocated "
     "memory 9.08 GiB is allocated by PyTorch, and 9.35 GiB is reserved by PyTorch but unallocated."},
    {"wxian3/NeuroLens#2", Status::oom_device, "",
     "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 55.57 GiB. GPU 0 has a total capacty of 12.00 "
     "GiB "
     "of which 9.02 GiB is free."},
    {"intel/torch-xpu-ops#3157", Status::oom_device, "",
     "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 32.00 GiB. GPU 0 has a total capacity of 11.59 GiB "
     "of "
     "which 9.01 GiB is free. Of the allocated memory 0 bytes is allocated by PyTorch"},
    {"intel/torch-xpu-ops#3011", Status::oom_device, "",
     "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 4.66 GiB. GPU 0 has a total capacity of 5.65 GiB of "
     "which 5.65 GiB is free."},
    {"intel/intel-extension-for-pytorch#629", Status::oom_device, "",
     "RuntimeError: XPU out of memory. Tried to allocate 1.71 GiB (GPU 0; 15.56 GiB total capacity; 0 bytes already "
     "allocated; 0 bytes reserved in total by PyTorch)"},
    {"intel/intel-extension-for-pytorch#629", Status::oom_device, "",
     "RuntimeError: Current platform can NOT allocate memory block with size larger than 4GB! Tried to allocate 6.85 "
     "GiB"},
    {"intel/torch-xpu-ops#5432", Status::oom_device, "",
     "RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)"},
    {"ggml-org/llama.cpp#25286", Status::oom_device, "",
     "level_zero backend failed with error: 39 [UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY]"},
    {"CHIP-SPV/chipStar#612", Status::oom_device, "",
     "CHIP error [TID 152291] : hipErrorTbd (ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY ) in enqueueBarrierImpl"},
    {"Lightning-AI/pytorch-lightning#6819", Status::oom_device, "", "RuntimeError: CUDA error: out of memory\n"},

    // may be memory
    {"QwenLM/Qwen3#873", Status::oom_suspect, "",
     "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"},
    {"mlcommons/algorithmic-efficiency#185", Status::oom_suspect, "", "CUBLAS_STATUS_NOT_INITIALIZED"},
    {"karpathy/llama2.c#279", Status::oom_suspect, "",
     "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"},
    {"haotian-liu/LLaVA#392", Status::oom_suspect, "", "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"},
    {"torch/torch7#780", Status::oom_suspect, "",
     "Error in CuDNN: CUDNN_STATUS_ALLOC_FAILED (cudnnFindConvolutionForwardAlgorithm)"},
    {"huggingface/accelerate#3405", Status::oom_suspect, "", "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED."},
    {"pytorch/pytorch#190972", Status::oom_suspect, "",
     "RuntimeError: level_zero backend failed with error: 40 (UR_RESULT_ERROR_OUT_OF_RESOURCES)"},

    // host memory
    {"JingyunLiang/VRT#49", Status::oom_host, "",
     "RuntimeError: [enforce fail at alloc_cpu.cpp:73] . DefaultCPUAllocator: can't allocate memory: you tried to "
     "allocate "
     "116813856768 bytes. Error code 12 (Cannot allocate memory)"},
    {"IvanoLauriola/MKLpy#27", Status::oom_host, "",
     "DefaultCPUAllocator: not enough memory: you tried to allocate 5077901088 bytes."},
    {"xinntao/Real-ESRGAN#272", Status::oom_host, "",
     "Error [enforce fail at CPUAllocator.cpp:67] . DefaultCPUAllocator: can't allocate memory: you tried to allocate "
     "264896512 bytes. Error code 12 (Cannot allocate memory)\n"
     "If you encounter CUDA out of memory, try to set --tile with a smaller number."},
    {"ClementPinard/FlowNetPytorch#85", Status::oom_host, "", "OSError: [Errno 12] Cannot allocate memory"},
    {"pytorch/pytorch#92134", Status::oom_host, "",
     "unable to mmap 2048 bytes from file <filename not specified>: Cannot allocate memory (12)"},
    {"0jc1/py-autovod#7", Status::oom_host, "",
     "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/"
     ",mems_allowed=0,global_oom,task=python,pid=7899,uid=0"},
    {"docker/for-linux#1001", Status::oom_host, "",
     "kernel: [  518.050606] Out of memory: Killed process 15784 (python3) total-vm:11964kB, anon-rss:4288kB"},
    {"reportportal/kubernetes#203", Status::oom_host, "",
     "[ 7063.247407] Memory cgroup out of memory: Killed process 63214 (uwsgi) total-vm:3149468kB, anon-rss:164992kB"},

    // shared memory
    {"hkchengrex/STCN#132", Status::oom_shm, "",
     "RuntimeError: DataLoader worker (pid 46794) is killed by signal: Bus error. It is possible that dataloader's "
     "workers "
     "are out of shared memory."},
    {"pytorch/pytorch#5040", Status::oom_shm, "",
     "RuntimeError: DataLoader worker (pid 13) is killed by signal: Bus error."},
    {"THU-DA-6D-Pose-Group/GDR-Net#16", Status::oom_shm, "",
     "malloc(): memory corruption\nERROR: Unexpected bus error encountered in worker. This might be caused by "
     "insufficient "
     "shared memory (shm)\nRuntimeError: DataLoader worker (pid(s) 3216) exited unexpectedly"},
    {"MIC-DKFZ/nnUNet#294", Status::oom_shm, "", "RuntimeError: unable to write to file </torch_15769_1517813162>"},
    {"idiap/ESLAM#20", Status::oom_shm, "",
     "RuntimeError: unable to write to file </torch_31911_952036340_6686>: No space left on device (28)"},
    {"huggingface/transformers#11658", Status::oom_shm, "",
     "include/shm.h:48 NCCL WARN Error while creating shared memory segment nccl-shm-recv-c43b846667d22574-1-1-0 (size "
     "9637888)\nNCCL error in: ProcessGroupNCCL.cpp:784, unhandled system error, NCCL version 2.7.8"},
    {"NVIDIA/nccl-tests#166", Status::oom_shm, "",
     "misc/shmutils.cc:112 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-zTYolS (size 5967872)"},

    // descriptors
    {"pytorch/pytorch#973", Status::oom_fd, "", "RuntimeError: received 0 items of ancdata"},
    {"kuleshov-group/caduceus#58", Status::oom_fd, "", "OSError: [Errno 24] Too many open files"},
    {"facebookresearch/maskrcnn-benchmark#158", Status::oom_fd, "",
     "RuntimeError: unable to open shared memory object </torch_30997_2076642173> in read-write mode"},

    // faults of the runtime
    {"THUDM/slime#1297", Status::runtime_fault, "",
     "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\nSearch for "
     "`cudaErrorIllegalAddress' in "
     "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information."},
    {"ROCm/TheRock#4214", Status::runtime_fault, "",
     "torch.AcceleratorError: HIP error: unspecified launch failure\nSearch for `hipErrorLaunchFailure' in "
     "https://rocm.docs.amd.com/projects/HIP/en/latest/index.html for more information."},
    {"rocm-arch/python-pytorch-rocm#41", Status::runtime_fault, "", "RuntimeError: HIP error: hipErrorLaunchFailure"},
    {"ComputationalRadiationPhysics/picongpu#4543", Status::runtime_fault, "",
     "'ret = TApi::eventQuery(event.getNativeHandle())' returned error  : 'cudaErrorLaunchFailure': 'unspecified "
     "launch "
     "failure'!"},
    {"mila-iqia/milabench#397", Status::runtime_fault, "",
     ":0:rocdevice.cpp :3586: 92087492418 us:  Callback: Queue 0x772c40900000 aborting with error : "
     "HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception. code: 0x1016"},
    {"ROCm/legacy-rocm-build#1393", Status::runtime_fault, "",
     ":0:rocdevice.cpp            :2303: 768423197593 us: Device::callbackQueue aborting with status: 0x100f"},
    {"ROCm/ROCmValidationSuite#128", Status::runtime_fault, "",
     "HCC STATUS_CHECK Error: HSA_STATUS_ERROR_OUT_OF_RESOURCES (0x1008) at file:mcwamp_hsa.cpp line:3794"},
    {"ROCm/legacy-rocm-build#1535", Status::runtime_fault, "",
     "Memory access fault by GPU node-2 (Agent handle: 0x55fea5592860) on address 0x7fc133800000. Reason: Page not "
     "present "
     "or supervisor privilege.\nAborted (core dumped)"},
    {"pytorch/pytorch#109929", Status::runtime_fault, "",
     "Memory access fault by GPU node-1 (Agent handle: 0x55eb9b596570) on address 0x7f66960b2000. Reason: Page not "
     "present "
     "or supervisor privilege."},
    {"ROCm/legacy-rocm-build#5051", Status::runtime_fault, "",
     "kernel: amdgpu 0000:0b:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:8 pasid:32792)"},
    {"ROCm/MIOpen#1994", Status::runtime_fault, "",
     "MIOpen Error: /MIOpen/src/ocl/convolutionocl.cpp:831: Forward Convolution cannot be executed due to incorrect "
     "params"},
    {"ROCm/TheRock#1229", Status::runtime_fault, "", "RuntimeError: miopenStatusUnknownError"},
    {"ROCm/TheRock#2489", Status::runtime_fault, "", "RuntimeError: miopenStatusInternalError"},
    {"pytorch/pytorch#17774", Status::runtime_fault, "", "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"},
    {"open-mmlab/mmsegmentation#3294", Status::runtime_fault, "",
     "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR"},
    {"SevaSk/ecoute#121", Status::runtime_fault, "",
     "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx( handle, opa, opb, m, n, k, &falpha, a"},
    {"AyakaGEMM/Hands-on-GEMM#11", Status::runtime_fault, "", "CUDA: misaligned address"},
    {"pytorch/pytorch#177714", Status::runtime_fault, "",
     "RuntimeError: level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)"},
    {"intel/intel-extension-for-pytorch#780", Status::runtime_fault, "",
     "RuntimeError: Native API failed. Native API returns: 20 (UR_RESULT_ERROR_DEVICE_LOST)"},
    {"pop-os/pop#3363", Status::runtime_fault, "", "nvidia error \"GPU has fallen off the bus\""},
    {"NVIDIA/nccl#425", Status::runtime_fault, "", "Runtime error: NCCL Error unhandled cuda error test.cu:43"},
    {"pytorch/pytorch#37004", Status::runtime_fault, "",
     "RuntimeError: NCCL error in ProcessGroupNCCL.cpp:290, unhandled system error"},

    // workers and waits
    {"pytorch/pytorch#8976", Status::worker_died, "SIGKILL",
     "RuntimeError: DataLoader worker (pid 1817) is killed by signal: Killed. "},
    {"MhLiao/DB#94", Status::worker_died, "SIGSEGV",
     "RuntimeError: DataLoader worker (pid 25902) is killed by signal: Segmentation fault"},
    {"Starrah/DMH-Net#3", Status::worker_died, "SIGSEGV",
     "ERROR: Unexpected segmentation fault encountered in worker."},
    {"facebookresearch/mmf#147", Status::worker_died, "",
     "RuntimeError: DataLoader worker (pid(s) 10306) exited unexpectedly"},
    {"pytorch/pytorch#5301", Status::worker_died, "",
     "RuntimeError: DataLoader worker (pid 39637) exited unexpectedly with exit code 1"},
    {"pytorch/pytorch#47445", Status::worker_died, "", "RuntimeError: Pin memory thread exited unexpectedly"},
    {"pytorch/pytorch#11985", Status::hang, "", "RuntimeError: DataLoader timed out after 1 seconds"},
    {"hiyouga/LlamaFactory#7396", Status::hang, "",
     "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, "
     "NumelIn=466119168, "
     "NumelOut=466119168, Timeout(ms)=600000) ran for 600060 milliseconds before timing out."},
    {"snowflakedb/ArcticTraining#219", Status::hang, "",
     "[Rank 7] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued "
     "collectives."},
};

std::string shown(const Failure& failure) {
  return std::string(name(failure.status)) + "/" + failure.kind + ": " + failure.cause;
}

os::Ended exited(int code) {
  return {.code = code, .signal = 0};
}

os::Ended ended_by(int signal) {
  return {.code = 128 + signal, .signal = signal};
}

TEST(Classify, KnowsWhatPeopleReported) {
  std::set<std::string> texts;
  for (const Seen& seen : kSeen) {
    const Failure failure = classify_text(seen.text);
    EXPECT_EQ(failure.status, seen.status) << seen.source << "\n" << shown(failure);
    EXPECT_EQ(failure.kind, seen.kind) << seen.source << "\n" << shown(failure);
    EXPECT_FALSE(failure.cause.empty()) << seen.source;
    EXPECT_FALSE(failure.remedy.empty()) << seen.source;
    EXPECT_EQ(failure.cause.find('\n'), std::string::npos) << seen.source;
    // The same words on stderr of a child that ended with code 1, below other lines, come to the same.
    const std::string tail =
        "Traceback (most recent call last):\n  File \"train.py\", line 9\n" + std::string(seen.text) + "\n";
    const auto whole = classify({.ended = exited(1), .stderr_tail = tail});
    ASSERT_TRUE(whole.has_value());
    EXPECT_EQ(whole->status, seen.status) << seen.source << "\n" << shown(*whole);
    texts.insert(seen.text);
  }
  EXPECT_EQ(texts.size(), std::size(kSeen));
  EXPECT_GE(std::size(kSeen), 60u);
}

TEST(Classify, NamesAnotherProcessThatHoldsTheDevice) {
  const Failure failure = classify_text(
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24.00 GiB "
      "of "
      "which 1.00 GiB is free. Process 4711 has 20.00 GiB memory in use. Including non-PyTorch memory, this process "
      "has "
      "3.00 GiB memory in use.");
  EXPECT_EQ(failure.kind, "shared");
}

TEST(Classify, OurOwnKillIsSureBeforeAnythingThatWasWritten) {
  Evidence evidence{.our_kill = OurKill::deadline, .ended = ended_by(SIGKILL), .stderr_tail = "HIP out of memory"};
  EXPECT_EQ(classify(evidence)->status, Status::hang);
  evidence.our_kill = OurKill::heartbeat;
  EXPECT_EQ(classify(evidence)->status, Status::hang);
  evidence.our_kill = OurKill::memory;
  EXPECT_EQ(classify(evidence)->status, Status::oom_host);
  EXPECT_EQ(classify(evidence)->kind, "capped");
}

TEST(Classify, AKillWithoutTheCgroupsCountIsNeverCalledMemory) {
  EXPECT_EQ(classify({.ended = ended_by(SIGKILL)})->status, Status::killed_unknown);
  EXPECT_EQ(classify({.ended = ended_by(SIGKILL), .cgroup_oom_kills = 1})->status, Status::oom_host);
  EXPECT_EQ(classify({.ended = exited(137)})->status, Status::killed_unknown);
  EXPECT_EQ(classify({.ended = exited(137), .cgroup_oom_kills = 2})->status, Status::oom_host);
  EXPECT_EQ(classify({.ended = exited(247), .cgroup_oom_kills = 2})->status, Status::oom_host);
  EXPECT_EQ(classify({.ended = ended_by(SIGTERM)})->status, Status::killed_unknown);
}

TEST(Classify, ReadsSignalsAlsoAsShellsTellThem) {
  for (const os::Ended segfault : {ended_by(SIGSEGV), exited(139), exited(245)}) {
    EXPECT_EQ(classify({.ended = segfault})->status, Status::runtime_fault) << segfault.code;
  }
  for (const os::Ended bus : {ended_by(SIGBUS), exited(135)}) {
    EXPECT_EQ(classify({.ended = bus})->status, Status::oom_shm) << bus.code;
  }
  EXPECT_EQ(classify({.ended = ended_by(SIGABRT)})->status, Status::runtime_fault);
  EXPECT_EQ(classify({.ended = ended_by(SIGABRT),
                      .stderr_tail = "terminate called after throwing an instance of 'std::bad_alloc'"})
                ->status,
            Status::oom_host);
  EXPECT_EQ(classify({.ended = exited(134), .stderr_tail = "c10::OutOfMemoryError: CUDA out of memory."})->status,
            Status::oom_device);
}

TEST(Classify, BelievesTheExceptionBeforeOtherLines) {
  const Failure failure = *classify({.ended = exited(1),
                                     .exception_type = "KeyError",
                                     .exception_text = "'label'",
                                     .stderr_tail = "retrying after HIP out of memory"});
  EXPECT_EQ(failure.status, Status::user_error);
  EXPECT_EQ(failure.cause, "KeyError: 'label'");
  EXPECT_EQ(classify({.ended = exited(1), .exception_type = "MemoryError"})->status, Status::oom_host);
  EXPECT_EQ(classify({.ended = exited(1), .exception_type = "numpy.core._exceptions._ArrayMemoryError"})->status,
            Status::oom_host);
  EXPECT_EQ(classify({.ended = exited(1), .exception_type = "torch.OutOfMemoryError"})->status, Status::oom_device);
  EXPECT_EQ(classify({.ended = exited(1),
                      .exception_type = "torch.AcceleratorError",
                      .exception_text = "HIP error: out of memory"})
                ->status,
            Status::oom_device);
  // The interpreter may crash while it cleans up; the exception came first.
  EXPECT_EQ(classify({.ended = ended_by(SIGSEGV), .exception_type = "torch.OutOfMemoryError"})->status,
            Status::oom_device);
}

TEST(Classify, FollowsADeadWorkerToItsCause) {
  const Evidence killed{.ended = exited(1),
                        .cgroup_oom_kills = 1,
                        .exception_type = "RuntimeError",
                        .exception_text = "DataLoader worker (pid 7) is killed by signal: Killed. "};
  EXPECT_EQ(classify(killed)->status, Status::oom_host);
  const Evidence bus{.ended = exited(1),
                     .exception_type = "RuntimeError",
                     .exception_text = "DataLoader worker (pid(s) 7) exited unexpectedly",
                     .stderr_tail =
                         "ERROR: Unexpected bus error encountered in worker. This might be caused by "
                         "insufficient shared memory (shm).\n"};
  EXPECT_EQ(classify(bus)->status, Status::oom_shm);
}

TEST(Classify, DecidesSuspicionsByTheMemoryThatWasFree) {
  Evidence evidence{.ended = exited(1),
                    .exception_type = "RuntimeError",
                    .exception_text = "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"};
  EXPECT_EQ(classify(evidence)->status, Status::oom_suspect);
  evidence.device_free_bytes = 20ull << 20;
  EXPECT_EQ(classify(evidence)->status, Status::oom_device);
  evidence.device_free_bytes = 1ull << 30;
  EXPECT_EQ(classify(evidence)->status, Status::oom_suspect);
  evidence.device_free_bytes = 40ull << 30;
  EXPECT_EQ(classify(evidence)->status, Status::runtime_fault);
}

TEST(Classify, TakesTheEndForGoodOnlyIfItWasReported) {
  EXPECT_FALSE(classify({.reported_done = true}).has_value());
  EXPECT_FALSE(classify({.reported_done = true, .stderr_tail = "warning: CUDA out of memory, retried"}).has_value());
  EXPECT_EQ(classify({})->status, Status::user_error);
  EXPECT_EQ(classify({.stderr_tail = "HIP out of memory. Tried to allocate 1 GiB"})->status, Status::oom_device);
  EXPECT_EQ(classify({.ended = exited(3), .reported_done = true})->status, Status::user_error);
}

TEST(Classify, ShowsTheLastWordsOfAnUnknownError) {
  const Failure failure =
      *classify({.ended = exited(1),
                 .stderr_tail = "Traceback:\n  File \"t.py\", line 3\n    x[9]\n    ~^^^\nIndexError: 9\n\n"});
  EXPECT_EQ(failure.status, Status::user_error);
  EXPECT_EQ(failure.cause, "IndexError: 9");
  EXPECT_EQ(classify({.ended = exited(3)})->cause, "ended with code 3 and wrote nothing to stderr");
  EXPECT_EQ(classify_text("").status, Status::killed_unknown);
  EXPECT_EQ(classify_text("ValueError: odd").status, Status::user_error);
  EXPECT_EQ(classify_text("connection during a wiring timeout").status, Status::user_error);
}

TEST(Classify, KeepsCausesShortAndWhole) {
  std::string tail = "Error: ";
  for (int i = 0; i < 400; ++i) tail += "\xc3\xa4";  // two bytes each
  const Failure failure = *classify({.ended = exited(1), .stderr_tail = tail});
  EXPECT_LE(failure.cause.size(), 300u);
  EXPECT_EQ(failure.cause.substr(failure.cause.size() - 5), "\xc3\xa4...");
}

TEST(Classify, AMemoryLimitThatOurLoaderRefusesIsALackOfMemory) {
  Evidence evidence{.ended = {.code = 2}};
  evidence.exception_type = "stoker";
  evidence.exception_text = "--memory-limit 1MB is too small: two batches need 4.0 MiB";
  evidence.exception_option = "memory_limit";
  const std::optional<Failure> failure = classify(evidence);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->status, Status::oom_host);
  EXPECT_EQ(failure->cause, evidence.exception_text);
}

TEST(Classify, AnyOtherRefusalOfOurLoaderIsAUserErrorInItsOwnWords) {
  Evidence evidence{.ended = {.code = 2}};
  evidence.exception_type = "stoker";
  evidence.exception_text = "cannot open `data`: CUDA out of memory.jpg";
  evidence.exception_option = "";
  const std::optional<Failure> failure = classify(evidence);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->status, Status::user_error);
  EXPECT_EQ(failure->cause, evidence.exception_text);
}

}  // namespace
}  // namespace stoker::tune
