// One table of flags per verb; the parser, `-h` and `--help` are made from it. Single-threaded.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/base/text.h"

namespace stoker::cli {

struct Flag {
  std::string name;        // "--batch-size"
  std::string value;       // "N"; empty: a switch
  std::string fallback;    // the default as people read it; empty: off, or nothing
  std::string help;        // one sentence, lower case
  bool brief = false;      // shown by -h too
  bool negatable = false;  // a switch that has a --no- form
  char letter = 0;         // -q
  std::string choice{};    // a switch that may be given a value, after `=` only: "HOW"
};

struct Section {
  std::string title;
  std::vector<Flag> flags;
};

struct Example {
  std::string command, does;
};

class Arguments;

struct Verb {
  std::string name, summary;
  std::string operand;  // "ADDRESS", "SOURCE DEST"; empty: none is taken
  std::string operand_help;
  std::vector<Example> examples;
  std::vector<Section> sections;
  std::string (*more)();  // further text of --help, or null
  int (*run)(const Arguments&);
  bool takes_command = false;          // the operands are a command: what follows its first word is not read as flags
  bool command_behind_dashes = false;  // what follows `--` is a command, apart from the operands
};

// What the user typed after the verb, checked against the verb's table. Every reader throws Error(usage) naming the
// flag.
class Arguments {
 public:
  // Throws Error(usage): an unknown flag offers the nearest one.
  Arguments(const Verb& verb, const std::vector<std::string>& words);

  const Verb& verb() const noexcept { return verb_; }
  bool wants_short_help() const noexcept { return short_help_; }
  bool wants_long_help() const noexcept { return long_help_; }
  const std::string& operand(std::size_t number = 0) const;  // throws if it was not given
  const std::vector<std::string>& operands() const noexcept { return operands_; }
  const std::vector<std::string>& command() const noexcept { return command_; }  // empty: none was given

  bool has(std::string_view flag) const;                   // given, in any form
  std::optional<bool> is_on(std::string_view flag) const;  // a switch: none if neither form was given
  std::string text(std::string_view flag) const;           // the last one given, or the default of the table
  std::vector<std::string> all(std::string_view flag) const;
  std::uint64_t count(std::string_view flag, std::uint64_t least = 0) const;
  double number(std::string_view flag, double least = 0) const;
  std::uint64_t bytes(std::string_view flag) const;
  std::chrono::nanoseconds duration(std::string_view flag) const;

 private:
  const Flag& find(std::string_view flag) const;

  const Verb& verb_;
  std::map<std::string, std::vector<std::string>, std::less<>> given_;
  std::vector<std::string> operands_, command_;
  bool short_help_ = false, long_help_ = false;
};

std::string short_help(const Verb& verb, int width);
std::string long_help(const Verb& verb, int width);
std::string program_help(const std::vector<const Verb*>& verbs, bool everything, int width);

// A sentence of the engine, with the options that it names spelled as flags. An option that is no flag of the verb is
// spelled as in Python.
std::string in_flags(const Text& text, const Verb& verb);
std::vector<std::string> in_flags(const std::vector<Text>& texts, const Verb& verb);

// The flags that every verb has: --json, --quiet, --color.
Section common_flags();

}  // namespace stoker::cli
