// stoker doctor: what this machine offers, what of Stoker works here, and what to change.
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/json.h"
#include "stoker/base/units.h"
#include "stoker/codec/media.h"
#include "stoker/feed/machine.h"
#include "stoker/tune/environment.h"

#include "interrupt.h"
#include "json_head.h"
#include "terminal.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

using feed::Machine;

struct Looked {
  Machine machine;
  std::string folder;
  std::optional<tune::PythonFacts> python;
  std::string why_no_python;
};

void stop_if_interrupted() {
  if (interrupted()) throw Error(ErrorKind::unavailable, "interrupted");
}

Looked look(const Arguments& arguments) {
  Looked looked;
  looked.folder = arguments.operands().empty() ? "." : arguments.operand();
  if (!std::filesystem::is_directory(looked.folder))
    throw Error(ErrorKind::not_found, fmt::format("there is no folder `{}`", looked.folder),
                "name a folder on the disk that holds the data");
  feed::MachineWishes wishes;
  if (!arguments.is_on("--disk").value_or(true)) looked.folder.clear();
  wishes.folder = looked.folder;
  looked.machine = feed::look_at_machine(wishes);
  stop_if_interrupted();
  try {
    looked.python = tune::look_at_python(arguments.text("--python"), interrupted);
  } catch (const Error& error) {
    looked.why_no_python = error.message();
  }
  stop_if_interrupted();
  return looked;
}

std::string cores_text(const Machine& machine) {
  std::string text = fmt::format("{:.3g}", machine.cores.available);
  if (!machine.cores.limited_by.empty())
    text += fmt::format(" of {} ({})", machine.cores.online, machine.cores.limited_by);
  if (machine.cores_of_others) text += fmt::format("; other programs keep {:.2g} busy", *machine.cores_of_others);
  return text;
}

std::string disk_text(const Machine& machine) {
  std::string text = machine.disk ? fmt::format("{} free; ", format_bytes(machine.disk->free_bytes)) : std::string();
  if (!machine.disk_rates) return text + "not read on trial: " + printable(machine.why_no_disk_rates);
  return text + fmt::format("single samples of {} KB at {} MB/s, neighbours at {} MB/s, past the page cache",
                            feed::kTrialSample / 1000, format_rate(machine.disk_rates->single_bytes_per_s / 1e6),
                            format_rate(machine.disk_rates->neighbour_bytes_per_s / 1e6));
}

std::string python_text(const Looked& looked) {
  if (!looked.python) return printable(looked.why_no_python);
  const tune::PythonFacts& python = *looked.python;
  std::string text =
      fmt::format("{}; the package stoker is {}", python.version, python.has_stoker ? "there" : "not there");
  text += python.torch ? fmt::format("; torch {}", *python.torch) : std::string("; no torch");
  if (python.cuda) text += fmt::format(" for CUDA {}", *python.cuda);
  if (python.hip) text += fmt::format(" for ROCm {}", *python.hip);
  return text;
}

std::string accelerator_text(const measure::AcceleratorReading& one) {
  return one.name + (one.memory_total_bytes ? fmt::format(", {}", format_bytes(*one.memory_total_bytes)) : "");
}

std::string to_text(const Looked& looked, const Terminal& terminal) {
  const Machine& machine = looked.machine;
  std::string out = fmt::format("stoker {}\n", kVersion);
  const auto row = [&](std::string_view label, std::string_view text) { out += labelled(terminal, label, 13, text); };
  row("cores", cores_text(machine));
  row("CPU", fmt::format("{}{}", machine.cpu.empty() ? "unknown" : machine.cpu,
                         machine.vectors.empty() ? "; plain code" : fmt::format("; code for {}", machine.vectors)));
  row("memory", fmt::format("{} ({}){}", format_bytes(machine.memory.bytes), machine.memory.limited_by,
                            machine.memory_available_bytes
                                ? fmt::format("; {} available", format_bytes(*machine.memory_available_bytes))
                                : ""));
  row("/dev/shm", machine.shm ? fmt::format("{}, {} in use", format_bytes(machine.shm->total_bytes),
                                            format_bytes(machine.shm->used_bytes))
                              : "none");
  row("io_uring", machine.has_ring ? "works" : fmt::format("refused: {}", machine.why_no_ring));
  row("open files", machine.open_files > 1'000'000'000 ? "no limit" : format_count(machine.open_files));
  if (!looked.folder.empty()) row("disk", disk_text(machine));
  if (machine.accelerators.empty()) row("accelerator", "none was found (NVML, amdgpu)");
  for (const measure::AcceleratorReading& one : machine.accelerators) row("accelerator", accelerator_text(one));
  row("Python", python_text(looked));
  row("reads", fmt::format("{}; from {}", codec::names(), sources_version()));
  row("volumes", volumes_version());
  row("prepares", dicom_version());
  const auto advice = feed::advise(machine);
  if (advice.empty()) return out + "nothing here holds Stoker back\n";
  out += "worth a change:\n";
  for (const feed::MachineAdvice& one : advice) {
    out += labelled(terminal, one.about, 13, one.what);
    out += labelled(terminal, "", 13, in_flags(one.remedy, doctor_verb()));
  }
  return out;
}

// For bug reports: no path or name of the user.
Json to_json(const Looked& looked) {
  const Machine& machine = looked.machine;
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(); };
  Json json = json_head("doctor");
  json.update({{"kernel", machine.kernel},
               {"cpu", machine.cpu},
               {"vectors", machine.vectors},
               {"cores", machine.cores.available},
               {"cores_online", machine.cores.online},
               {"cores_limited_by", machine.cores.limited_by},
               {"cores_of_others", or_null(machine.cores_of_others)},
               {"memory_bytes", machine.memory.bytes},
               {"memory_limited_by", machine.memory.limited_by},
               {"memory_available_bytes", or_null(machine.memory_available_bytes)},
               {"io_uring", machine.has_ring},
               {"io_uring_refused", machine.why_no_ring},
               {"open_files", machine.open_files},
               {"codecs", codec::names()},
               {"sources", sources_version()},
               {"volumes", volumes_version()},
               {"prepares", dicom_version()}});
  json["shm"] =
      machine.shm ? Json{{"total_bytes", machine.shm->total_bytes}, {"used_bytes", machine.shm->used_bytes}} : Json();
  json["disk"] = Json();
  if (machine.disk_rates) {
    json["disk"] = {{"single_bytes_per_s", machine.disk_rates->single_bytes_per_s},
                    {"neighbour_bytes_per_s", machine.disk_rates->neighbour_bytes_per_s},
                    {"free_bytes", machine.disk ? Json(machine.disk->free_bytes) : Json()}};
  }
  json["accelerators"] = Json::array();
  for (const measure::AcceleratorReading& one : machine.accelerators)
    json["accelerators"].push_back({{"name", one.name}, {"memory_bytes", or_null(one.memory_total_bytes)}});
  json["python"] = Json();
  if (looked.python) {
    json["python"] = {{"version", looked.python->version},
                      {"stoker", looked.python->has_stoker},
                      {"torch", or_null(looked.python->torch)},
                      {"cuda", or_null(looked.python->cuda)},
                      {"hip", or_null(looked.python->hip)}};
  }
  json["advice"] = Json::array();
  for (const feed::MachineAdvice& one : feed::advise(machine))
    json["advice"].push_back(
        {{"about", one.about}, {"what", one.what}, {"remedy", in_flags(one.remedy, doctor_verb())}});
  return json;
}

int run_doctor(const Arguments& arguments) {
  const Face face = make_face(arguments, arguments.text("--color"));
  Bar bar(face, "looking at the machine");
  bar.update(0, "");
  const Looked looked = look(arguments);
  bar.clear();
  answer(face.json ? to_json(looked).dump(2) + "\n" : to_text(looked, face.out));
  return 0;
}

}  // namespace

const Verb& doctor_verb() {
  static const Verb verb = {
      "doctor",
      "what this machine offers, what of Stoker works here, and what to change",
      "[FOLDER]",
      "a folder on the disk that holds the data; without: the folder that one is in",
      {{"stoker doctor", "list cores, memory, io_uring, disk, accelerators and Python, with advice"},
       {"stoker doctor /data", "the same, with the disk below /data"},
       {"stoker doctor --json", "the same for a bug report, without your paths and names"}},
      {{"how",
        {{"--disk", "", "",
          "read the disk on trial, for a second: a file of 64 MB is written, read and removed; on unless --no-disk",
          true, true},
         {"--python", "FILE", "python3", "the interpreter to look at"}}},
       common_flags()},
      nullptr,
      run_doctor};
  return verb;
}

}  // namespace stoker::cli
