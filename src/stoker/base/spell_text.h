// How a face spells the options that sentences name: Text::in_python, or Text::in_flags with its own flags. For code
// that writes texts into JSON for whichever face asks. Safe from any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "stoker/base/text.h"

namespace stoker {

using SpellText = std::function<std::string(const Text&)>;

inline std::vector<std::string> spell_all(const std::vector<Text>& texts, const SpellText& spell) {
  std::vector<std::string> all;
  all.reserve(texts.size());
  for (const Text& text : texts) all.push_back(spell(text));
  return all;
}

}  // namespace stoker
