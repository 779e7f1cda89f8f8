#include "flags.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/format_text.h"
#include "stoker/base/spell_text.h"
#include "stoker/base/units.h"
#include "stoker/base/version.h"

namespace stoker::cli {
namespace {

constexpr std::string_view kOff = "\x01off";  // what --no-x leaves in the table of given flags

// Flags that had another name before, so that an old script is told the new one.
struct Renamed {
  std::string_view verb, before, now;
};
constexpr Renamed kRenamed[] = {{"tune", "--color-mode", "--image-color"},
                                {"measure", "--knob", "--with"},
                                {"pack", "--no-seek-index", "--seek-index off"},
                                {"check", "--decode", "--decode-all"},
                                {"inspect", "--decode", "--decode-all"}};

std::string help_hint(const Verb& verb) {
  return fmt::format("`stoker {} --help` lists every flag", verb.name);
}

std::string wrap(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = indent;
  bool first = true;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    if (!first && column + 1 + word.size() > width) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
      first = true;
    }
    if (!first) out += ' ', ++column;
    out += word;
    column += word.size();
    first = false;
    text = space == std::string_view::npos ? std::string_view{} : text.substr(space + 1);
  }
  return out;
}

std::string left_of(const Flag& flag) {
  std::string left = flag.letter ? fmt::format("-{}, ", flag.letter) : "";
  left += flag.negatable ? fmt::format("--[no-]{}", flag.name.substr(2)) : flag.name;
  if (!flag.choice.empty()) left += fmt::format("[={}]", flag.choice);
  if (!flag.value.empty()) left += " " + flag.value;
  return left;
}

// With `brief`, up to the first semicolon.
std::string right_of(const Flag& flag, bool brief) {
  const std::string help = brief ? flag.help.substr(0, flag.help.find(';')) : flag.help;
  return flag.fallback.empty() ? help : fmt::format("{} [{}]", help, flag.fallback);
}

constexpr std::size_t kIndent = 25;

std::string line_of(std::string_view left, std::string_view right, std::size_t width) {
  std::string out = fmt::format("  {}", left);
  if (out.size() + 2 > kIndent) {
    out += '\n';
    out.append(kIndent, ' ');
  } else {
    out.append(kIndent - out.size(), ' ');
  }
  return out + wrap(right, kIndent, width) + "\n";
}

std::string examples_of(const std::vector<Example>& examples, std::size_t most, bool explain, std::size_t width) {
  std::string out = "examples:\n";
  for (std::size_t i = 0; i < std::min(most, examples.size()); ++i) {
    if (explain) out += fmt::format("  # {}\n", wrap(examples[i].does, 4, width));
    out += fmt::format("  {}\n", examples[i].command);
  }
  return out;
}

std::string usage_of(const Verb& verb) {
  if (verb.takes_command) return fmt::format("usage: stoker {} [flags] {}\n", verb.name, verb.operand);
  return fmt::format("usage: stoker {}{} [flags]\n", verb.name, verb.operand.empty() ? "" : " " + verb.operand);
}

std::size_t sane(int width) {
  return static_cast<std::size_t>(std::clamp(width, 60, 100));
}

}  // namespace

Arguments::Arguments(const Verb& verb, const std::vector<std::string>& words) : verb_(verb) {
  bool only_operands = false;
  std::string misread;  // `--shuffle full`: a word behind a flag that takes its value with `=`
  const Flag* before = nullptr;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const Flag* const bare = std::exchange(before, nullptr);
    if (only_operands || word.size() < 2 || word[0] != '-') {
      if (bare != nullptr && misread.empty()) misread = fmt::format("{}={}", bare->name, word);
      operands_.push_back(word);
      only_operands = only_operands || verb_.takes_command;
      continue;
    }
    if (word == "--" && verb_.command_behind_dashes) {
      command_.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (word == "--") {
      only_operands = true;
      continue;
    }
    if (word == "-h") {
      short_help_ = true;
      continue;
    }
    if (word == "--help") {
      long_help_ = true;
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const Flag* found = nullptr;
    bool negated = false;
    for (const Section& section : verb_.sections) {
      for (const Flag& flag : section.flags) {
        const bool is_negation = flag.negatable && name == "--no-" + flag.name.substr(2);
        if (name != flag.name && !is_negation && !(flag.letter && name == std::string{'-', flag.letter})) continue;
        found = &flag;
        negated = is_negation;
      }
    }
    if (!found) {
      for (const Renamed& one : kRenamed) {
        if (one.verb != verb_.name || one.before != name) continue;
        throw Error(ErrorKind::usage, fmt::format("`stoker {}` has no flag `{}`", verb_.name, name),
                    fmt::format("it is `{}` now", one.now));
      }
      std::vector<std::string> names = {"--help"};
      for (const Section& section : verb_.sections) {
        for (const Flag& flag : section.flags) {
          names.push_back(flag.name);
          if (flag.negatable) names.push_back("--no-" + flag.name.substr(2));
        }
      }
      const std::vector<std::string_view> views(names.begin(), names.end());
      const std::string near = nearest(name, views.data(), views.size());
      throw Error(ErrorKind::usage, fmt::format("`stoker {}` has no flag `{}`", verb_.name, name),
                  near.empty() ? help_hint(verb_) : fmt::format("did you mean `{}`?", near));
    }
    std::vector<std::string>& values = given_[found->name];
    if (found->value.empty()) {
      if (equals != std::string::npos && !found->choice.empty() && !negated) {
        values.push_back(word.substr(equals + 1));
        continue;
      }
      if (equals != std::string::npos) {
        throw Error(ErrorKind::usage, fmt::format("`{}` takes no value, got `{}`", name, word.substr(equals + 1)),
                    help_hint(verb_));
      }
      values.emplace_back(negated ? kOff : "");
      if (!found->choice.empty() && !negated) before = found;
    } else if (equals != std::string::npos) {
      values.push_back(word.substr(equals + 1));
    } else if (i + 1 < words.size() && words[i + 1] != "--") {
      values.push_back(words[++i]);
    } else {
      throw Error(ErrorKind::usage, fmt::format("`{}` needs a value", name),
                  fmt::format("write `{} {}`: {}", name, found->value, found->help));
    }
  }
  const std::size_t most =
      verb_.operand.empty() ? 0
      : verb_.operand.ends_with("...")
          ? words.size()
          : 1 + static_cast<std::size_t>(std::count(verb_.operand.begin(), verb_.operand.end(), ' '));
  if (operands_.size() > most && !verb_.takes_command && !short_help_ && !long_help_) {
    throw Error(ErrorKind::usage,
                fmt::format("`stoker {}` takes {} {}, got a further `{}`", verb_.name,
                            most == 0   ? "no"
                            : most == 1 ? "one"
                                        : "only",
                            most == 0 ? "operand" : verb_.operand, operands_[most]),
                misread.empty() ? help_hint(verb_) : fmt::format("did you mean `{}`?", misread));
  }
}

const std::string& Arguments::operand(std::size_t number) const {
  if (operands_.size() <= number) {
    throw Error(ErrorKind::usage,
                fmt::format("`stoker {}` needs {}: {}", verb_.name, verb_.operand, verb_.operand_help),
                fmt::format("for example: `{}`", verb_.examples.front().command));
  }
  return operands_[number];
}

const Flag& Arguments::find(std::string_view flag) const {
  for (const Section& section : verb_.sections) {
    for (const Flag& candidate : section.flags) {
      if (candidate.name == flag) return candidate;
    }
  }
  throw Error(ErrorKind::internal, fmt::format("the table of `stoker {}` lacks `{}`", verb_.name, flag));
}

bool Arguments::has(std::string_view flag) const {
  find(flag);
  return given_.contains(flag);
}

std::optional<bool> Arguments::is_on(std::string_view flag) const {
  find(flag);
  const auto it = given_.find(flag);
  if (it == given_.end()) return std::nullopt;
  return it->second.back() != kOff;
}

std::string Arguments::text(std::string_view flag) const {
  const auto it = given_.find(flag);
  return it == given_.end() ? find(flag).fallback : it->second.back();
}

std::vector<std::string> Arguments::all(std::string_view flag) const {
  find(flag);
  const auto it = given_.find(flag);
  return it == given_.end() ? std::vector<std::string>{} : it->second;
}

std::uint64_t Arguments::count(std::string_view flag, std::uint64_t least) const {
  const std::string value = text(flag);
  std::uint64_t number = 0;
  const auto [after, code] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (code != std::errc{} || after != value.data() + value.size() || number < least) {
    throw Error(ErrorKind::usage, fmt::format("`{}` takes a whole number from {}, not `{}`", flag, least, value),
                fmt::format("{}: {}", flag, find(flag).help));
  }
  return number;
}

double Arguments::number(std::string_view flag, double least) const {
  const std::string value = text(flag);
  double result = 0;
  const auto [after, code] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (code != std::errc{} || after != value.data() + value.size() || !std::isfinite(result) || result < least) {
    throw Error(ErrorKind::usage, fmt::format("`{}` takes a number from {}, not `{}`", flag, least, value),
                fmt::format("{}: {}", flag, find(flag).help));
  }
  return result;
}

std::uint64_t Arguments::bytes(std::string_view flag) const {
  try {
    return parse_bytes(text(flag));
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, format_text("`{}`: {}", flag, error.text()), error.hint_text());
  }
}

std::chrono::nanoseconds Arguments::duration(std::string_view flag) const {
  try {
    return parse_duration(text(flag));
  } catch (const Error& error) {
    throw Error(ErrorKind::usage, format_text("`{}`: {}", flag, error.text()), error.hint_text());
  }
}

Section common_flags() {
  return {"every verb",
          {{"--json", "", "", "one JSON object on stdout instead of text", true},
           {"--quiet", "", "", "no progress bar", false, false, 'q'},
           {"--color", "WHEN", "auto", "colour on the terminal: auto, always or never"}}};
}

std::string in_flags(const Text& text, const Verb& verb) {
  return text.in_flags([&](std::string_view option) {
    const std::string name = flag_of(option);
    for (const Section& section : verb.sections) {
      for (const Flag& flag : section.flags) {
        if (flag.name == name) return true;
      }
    }
    return false;
  });
}

std::vector<std::string> in_flags(const std::vector<Text>& texts, const Verb& verb) {
  return spell_all(texts, [&](const Text& text) { return in_flags(text, verb); });
}

std::string short_help(const Verb& verb, int width) {
  std::string out = examples_of(verb.examples, 2, false, sane(width));
  out += "\n" + usage_of(verb);
  out += "\n" + wrap(verb.summary, 0, sane(width)) + "\n\n";
  if (!verb.operand.empty()) out += line_of(verb.operand, verb.operand_help, sane(width));
  for (const Section& section : verb.sections) {
    for (const Flag& flag : section.flags) {
      if (flag.brief) out += line_of(left_of(flag), right_of(flag, true), sane(width));
    }
  }
  return out + fmt::format("\n`stoker {} --help` lists every flag.\n", verb.name);
}

std::string long_help(const Verb& verb, int width) {
  std::string out = examples_of(verb.examples, verb.examples.size(), true, sane(width));
  out += "\n" + usage_of(verb);
  out += "\n" + wrap(verb.summary, 0, sane(width)) + "\n\n";
  if (!verb.operand.empty()) out += line_of(verb.operand, verb.operand_help, sane(width));
  for (const Section& section : verb.sections) {
    out += fmt::format("\n{}:\n", section.title);
    for (const Flag& flag : section.flags) out += line_of(left_of(flag), right_of(flag, false), sane(width));
  }
  if (verb.more) out += "\n" + verb.more();
  out +=
      "\nexit codes: 0 done; 1 it ran and the answer is no; 2 wrong use or failure;\n"
      "  130 after Ctrl-C, 143 after SIGTERM\n"
      "environment: NO_COLOR no colour; STOKER_NO_PROGRESS no progress bar;\n"
      "  XDG_CACHE_HOME where listings of folders are kept\n";
  return out;
}

std::string program_help(const std::vector<const Verb*>& verbs, bool everything, int width) {
  std::vector<Example> examples;
  examples.reserve(verbs.size());
  for (const Verb* verb : verbs) examples.push_back(verb->examples.front());
  std::string out = examples_of(examples, examples.size(), everything, sane(width));
  out += "\nusage: stoker VERB [flags]\n\nStoker keeps accelerators fed, and shows what starves them.\n\nverbs:\n";
  for (const Verb* verb : verbs) out += line_of(verb->name, verb->summary, sane(width));
  out += "\nflags:\n";
  out += line_of("--version", "version and what this build reads", sane(width));
  out += line_of("-h, --help", "this text; after a verb: its flags, a screen of them or all", sane(width));
  if (everything) {
    for (const Verb* verb : verbs) out += fmt::format("\n---- stoker {}\n\n{}", verb->name, long_help(*verb, width));
  }
  return out;
}

}  // namespace stoker::cli
