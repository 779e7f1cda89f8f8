#include "stoker/tune/search.h"

#include <utility>

#include "stoker/tune/search_space.h"

namespace stoker::tune {
namespace {

// Every point once, in the order of the grid, but those that memory rules out.
class GridSearch final : public Search {
 public:
  explicit GridSearch(const SearchOptions& options) : space_(options) {}

  std::optional<Ask> next() override {
    if (space_.has_user_error()) return std::nullopt;
    for (const Point& point : space_.points()) {
      if (space_.rows_of(point).empty() && !space_.excluded(point)) return Ask{.point = point, .why = "grid"};
    }
    return std::nullopt;
  }

  void tell(const Row& row) override { space_.add(row); }

  std::vector<Row> left_out() const override {
    std::vector<Row> rows;
    for (const Point& point : space_.points()) {
      if (std::optional<Row> row = space_.excluded(point)) rows.push_back(std::move(*row));
    }
    return rows;
  }

  std::uint64_t at_most() const override {
    std::uint64_t count = 0;
    for (const Point& point : space_.points()) count += space_.rows_of(point).empty() && !space_.excluded(point);
    return count;
  }

 private:
  SearchSpace space_;
};

}  // namespace

std::unique_ptr<Search> grid_search(const SearchOptions& options) {
  return std::make_unique<GridSearch>(options);
}

}  // namespace stoker::tune
