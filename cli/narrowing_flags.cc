#include "narrowing_flags.h"

#include "load_options.h"

namespace stoker::cli {

std::vector<Flag> narrowing_flags() {
  return {option_flag("where"),      option_flag("class_subset"), option_flag("class_subset_seed"),
          option_flag("class_list"), option_flag("subset"),       option_flag("subset_seed")};
}

dataset::Narrowing narrowing_of(const Arguments& arguments) {
  loader::Request request;
  for (const char* const name : {"where", "class_list", "class_subset", "class_subset_seed", "subset", "subset_seed"}) {
    const loader::Option& option = loader::find_option(name);
    const std::string flag = flag_of(name);
    if (arguments.has(flag)) loader::set_option(request, option, loader::read_value(option, arguments.text(flag)));
  }
  dataset::Narrowing narrowing;
  narrowing.where = request.opening.where;
  narrowing.class_list = request.opening.class_list;
  narrowing.class_subset = request.opening.class_subset;
  narrowing.class_subset_seed = request.opening.class_subset_seed;
  narrowing.subset = request.opening.subset;
  narrowing.subset_seed = request.opening.subset_seed;
  return narrowing;
}

}  // namespace stoker::cli
