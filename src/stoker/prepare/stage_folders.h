// Folders of a copy without any file. Where classes are folders, such a folder counts as a class and changes the
// labels. The functions look at the disk. One thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stoker/prepare/stage_choice.h"

namespace stoker::prepare {

// Paths below `destination`, sorted: folders beside the class folders of the parts that hold no file, hidden ones and
// links left out.
std::vector<std::string> find_empty_folders(const std::string& destination, std::span<const StagePart> parts);

// Neither the folder nor those below it hold a file or a link.
bool holds_no_file(const std::string& folder);

}  // namespace stoker::prepare
