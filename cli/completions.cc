// stoker completions: the verbs and flags, as a shell completes them and as a manual page lists them. All are made from
// the tables that the parser reads.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "stoker/base/error.h"
#include "stoker/base/shell.h"
#include "stoker/base/version.h"

#include "terminal.h"
#include "verbs.h"

namespace stoker::cli {
namespace {

// Every form of a flag that may be typed.
std::vector<std::string> spellings(const Flag& flag) {
  std::vector<std::string> words = {flag.name};
  if (flag.negatable) words.push_back("--no-" + flag.name.substr(2));
  return words;
}

std::vector<Flag> flags_of(const Verb& verb) {
  std::vector<Flag> flags;
  for (const Section& section : verb.sections) flags.insert(flags.end(), section.flags.begin(), section.flags.end());
  flags.push_back({.name = "--help", .value = "", .fallback = "", .help = "what it does, with every flag"});
  return flags;
}

std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string bash() {
  std::string names, cases;
  for (const Verb* verb : all_verbs()) {
    names += (names.empty() ? "" : " ") + verb->name;
    std::string words;
    for (const Flag& flag : flags_of(*verb))
      for (const std::string& word : spellings(flag)) words += (words.empty() ? "" : " ") + word;
    cases += fmt::format("    {}) words='{}' ;;\n", verb->name, words);
  }
  return fmt::format(R"(# stoker completions bash > ~/.local/share/bash-completion/completions/stoker
_stoker() {{
  local now=${{COMP_WORDS[COMP_CWORD]}} words= word
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W '{} help --help --version' -- "$now")
    return
  fi
  for word in "${{COMP_WORDS[@]:2:COMP_CWORD-2}}"; do
    [ "$word" != -- ] || return  # a command of its own
  done
  [[ $now == -* ]] || return
  case ${{COMP_WORDS[1]}} in
{}  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$now")
}}
complete -o default -F _stoker stoker
)",
                     names, cases);
}

std::string zsh() {
  std::string verbs, cases;
  for (const Verb* verb : all_verbs()) {
    verbs += fmt::format("    {}\n", shell_word(fmt::format("{}:{}", verb->name, verb->summary)));
    cases += fmt::format("    {})\n      _arguments \\\n", verb->name);
    for (const Flag& flag : flags_of(*verb)) {
      for (const std::string& word : spellings(flag)) {
        cases += fmt::format(
            "        {} \\\n",
            shell_word(fmt::format(
                "*{}[{}]{}", word, escaped(flag.help, "[]:\\"),
                flag.value.empty() ? std::string() : fmt::format(":{}:_files", escaped(flag.value, ":[]\\")))));
      }
    }
    cases += "        '*:file:_files'\n      ;;\n";
  }
  return fmt::format(R"(#compdef stoker
# stoker completions zsh > a folder of $fpath, as _stoker
_stoker() {{
  local -a verbs
  verbs=(
{}  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  (( CURRENT-- ))
  case $verb in
{}  esac
}}
_stoker "$@"
)",
                     verbs, cases);
}

std::string fish() {
  std::string out = "# stoker completions fish | source\n";
  for (const Verb* verb : all_verbs()) {
    out += fmt::format("complete -c stoker -n __fish_use_subcommand -f -a {} -d {}\n", verb->name,
                       shell_word(verb->summary));
    for (const Flag& flag : flags_of(*verb)) {
      for (const std::string& word : spellings(flag)) {
        out += fmt::format("complete -c stoker -n '__fish_seen_subcommand_from {}' -l {}{} -d {}\n", verb->name,
                           word.substr(2), flag.value.empty() ? "" : " -r", shell_word(flag.help));
      }
    }
  }
  return out;
}

std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '\\' ? std::string("\\e") : c == '-' ? std::string("\\-") : std::string(1, c);
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string manual() {
  std::string out = fmt::format(
      ".TH STOKER 1 \"\" \"stoker {}\"\n.SH NAME\nstoker \\- measure, tune, feed and plan training jobs that wait for "
      "data\n.SH SYNOPSIS\n.B stoker\n.I VERB\n[\\fIflags\\fR]\n",
      kVersion);
  for (const Verb* verb : all_verbs()) {
    out += fmt::format(".SH \"stoker {}\"\n.B stoker {}\n", verb->name, verb->name);
    if (!verb->operand.empty()) out += roff(verb->operand) + "\n";
    out += fmt::format(".PP\n{}.\n", roff(verb->summary));
    for (const Section& section : verb->sections) {
      for (const Flag& flag : section.flags) {
        const std::string value = flag.value.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(flag.value));
        out += fmt::format(".TP\n\\fB{}\\fR{}\n{}{}\n",
                           roff(flag.negatable ? "--[no-]" + flag.name.substr(2) : flag.name), value, roff(flag.help),
                           flag.fallback.empty() ? "" : fmt::format(" (default: {})", roff(flag.fallback)));
      }
    }
    if (!verb->examples.empty()) out += ".PP\nExamples:\n";
    for (const Example& example : verb->examples)
      out += fmt::format(".TP\n{}\n{}\n", roff(example.command), roff(example.does));
  }
  return out;
}

int run_completions(const Arguments& arguments) {
  const std::string& what = arguments.operand();
  if (what == "bash") return answer(bash()), 0;
  if (what == "zsh") return answer(zsh()), 0;
  if (what == "fish") return answer(fish()), 0;
  if (what == "man") return answer(manual()), 0;
  throw Error(ErrorKind::usage, fmt::format("there are no completions for `{}`", printable(what)),
              "bash, zsh, fish; or man for a manual page");
}

}  // namespace

const Verb& completions_verb() {
  static const Verb verb = {"completions",
                            "write the completions of a shell, or a manual page",
                            "WHAT",
                            "bash, zsh, fish, or man",
                            {{"stoker completions bash > ~/.local/share/bash-completion/completions/stoker",
                              "complete commands from the next shell on"},
                             {"stoker completions zsh > ~/.zfunc/_stoker", "the same for zsh, in a folder of $fpath"},
                             {"stoker completions fish | source",
                              "the same for this fish; put it into ~/.config/fish/config.fish for every one"},
                             {"stoker completions man | man -l -", "show the manual page"}},
                            {},
                            nullptr,
                            run_completions};
  return verb;
}

}  // namespace stoker::cli
