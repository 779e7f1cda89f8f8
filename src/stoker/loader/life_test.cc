// The loader's life at random, step by step beside a model that predicts every batch, counter, state and error.
//
// A life is one data set and a few loaders on it, with 20 to 80 steps. Life number n of a run has the seed
// STOKER_LIFE_SEED + n, so a life that fails is repeated alone with its own seed: CONTRIBUTING.md says how.
// A step that does not end prints the steps so far and ends the program.
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include <gtest/gtest.h>

#include "stoker/loader/life_data_test.h"
#include "stoker/loader/life_model_test.h"

namespace stoker::loader {
namespace {

using dataset::LastBatch;
using dataset::Shuffle;
using storage::Storage;

constexpr auto kTimeout = std::chrono::seconds(60);        // of the loader: a lost wake-up becomes an error
constexpr auto kStepDeadline = std::chrono::seconds(240);  // a wait that even the watchdog does not end
constexpr std::size_t kMostHeld = 6;

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

// The steps of one life, and a thread that minds how long each takes.
class Journal {
 public:
  explicit Journal(std::uint64_t seed) : seed_(seed), guard_([this] { mind(); }) {}
  ~Journal() {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    guard_.join();
  }
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  void note(std::string step) {
    const std::scoped_lock lock(mutex_);
    steps_.push_back(std::move(step));
    changed_.notify_all();
  }
  std::size_t steps() const { return steps_.size(); }
  std::string text() const {
    std::string text = fmt::format("repeat it: STOKER_LIFE_SEED={} STOKER_LIFE_SECONDS=1\n", seed_);
    for (std::size_t i = 0; i < steps_.size(); ++i) text += fmt::format("{:4} {}\n", i, steps_[i]);
    return text;
  }

 private:
  void mind() {
    std::unique_lock lock(mutex_);
    while (!over_) {
      const std::size_t seen = steps_.size();
      if (changed_.wait_for(lock, kStepDeadline, [&] { return over_ || steps_.size() != seen; })) continue;
      std::fputs(("the last step does not end\n" + text()).c_str(), stderr);
      std::_Exit(1);
    }
  }

  const std::uint64_t seed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> steps_;
  bool over_ = false;
  std::thread guard_;
};

void check(bool is_so, const std::string& what) {
  if (!is_so) throw std::logic_error(what);
}

template <typename Value>
void check_equal(const Value& got, const Value& wanted, const char* what) {
  check(got == wanted, fmt::format("{}: {}, and not {} as the model says", what, got, wanted));
}

std::string words(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) text += fmt::format(" {}", number);
  return text;
}

class Life {
 public:
  Life(std::uint64_t seed, Journal& journal)
      : journal_(journal),
        random_(seed, 0, 0),
        kind_(static_cast<LifeKind>(below(static_cast<std::uint32_t>(LifeKind::kCount)))),
        size_(draw_size()),
        bad_(draw_bad()),
        equal_lengths_(below(2) == 0),
        data_(kind_, size_, bad_, equal_lengths_, seed),
        what_(draw_what(seed)),
        straight_(data_.open(Storage::buffered), what_) {
    std::string bad;
    for (const std::uint64_t index : bad_) bad += fmt::format(" {}", index);
    journal_.note(fmt::format("a data set: {}, {} samples, bad:{}; shuffle {}, {}", name(kind_), size_, bad,
                              text(what_.shuffle), is_sound() ? sound_text_ : "rows as they are"));
  }

  void run() {
    make_loader();
    for (std::uint32_t left = 20 + below(60); left > 0; --left) {
      act();
      if (loader_) check_place();
    }
    if (loader_) drop_loader();
    drop_held(held_.size());
  }

 private:
  struct Held {
    BatchPtr batch;
    Taken copy;
    std::uint64_t loader;
  };

  std::uint32_t below(std::uint32_t n) { return random_.below(n); }
  template <typename Value>
  Value one_of(std::initializer_list<Value> values) {
    return values.begin()[below(static_cast<std::uint32_t>(values.size()))];
  }
  bool is_sound() const { return kind_ != LifeKind::array && kind_ != LifeKind::raw_pack; }

  std::uint64_t draw_size() {
    const std::uint64_t least = is_sound() ? 1 : 0;  // without a sample nobody knows what a folder or a tar holds
    return one_of<std::uint64_t>({least, 1, 2, 3, 7, 16, 17, 20 + below(40)});
  }
  std::set<std::uint64_t> draw_bad() {
    std::set<std::uint64_t> bad;
    if (is_sound() && size_ > 1) {
      const std::uint32_t most = one_of<std::uint32_t>({0, 1, 3, static_cast<std::uint32_t>(size_)});
      for (std::uint32_t i = 0; i < most; ++i) bad.insert(1 + below(static_cast<std::uint32_t>(size_ - 1)));
    }
    return bad;
  }
  // What decides which sample stands where, and what becomes of it: the same for every loader of this life.
  LoaderOptions draw_what(std::uint64_t seed) {
    LoaderOptions what;
    what.seed = seed;
    what.shuffle = one_of<Shuffle>({false, true, true, Shuffle(Shuffle::How::blocks, 3, 12),
                                    Shuffle(Shuffle::How::blocks, 0, 0), Shuffle::by_node(3, 5)});
    what.memory_limit = 64 << 20;
    what.timeout = kTimeout;
    if (!is_sound()) return what;
    sound_text_ = equal_lengths_ ? one_of<std::string>({"pad:40", "resample:16000,pad:64", "encoded bytes"})
                                 : one_of<std::string>({"pad:30", "lengths that vary", "encoded bytes"});
    if (sound_text_ == "encoded bytes") {
      what.decode = Decode::none;
    } else if (sound_text_ != "lengths that vary") {
      what.transform = transform::parse_ops(sound_text_);
    }
    return what;
  }

  void make_loader() {
    LoaderOptions options = what_;
    const auto size = static_cast<std::uint32_t>(size_);
    options.batch_size = one_of<std::uint64_t>({1, 2, 3, 4, 5, size_ + 3, 1 + below(size + 1)});
    options.world_size = one_of<std::uint64_t>({1, 1, 2, 3});
    options.rank = below(static_cast<std::uint32_t>(options.world_size));
    options.last_batch = one_of({LastBatch::keep, LastBatch::keep, LastBatch::drop, LastBatch::pad});
    options.num_workers = static_cast<int>(below(4));
    options.storage = one_of({Storage::buffered, Storage::direct, Storage::mmap, Storage::ram, Storage::automatic});
    options.prefetch_factor = below(4);
    options.io_threads = one_of({kAuto, 1, 2});
    options.io_depth = one_of<std::uint64_t>({0, 1, 2, 8});
    options.on_error = one_of({OnError::raise, OnError::skip, OnError::replace, OnError::zero});
    options.max_errors = one_of({0.0, 0.0, 1.0, 3.0, 0.1});
    journal_.note(fmt::format(
        "a loader: batch_size {}, rank {} of {}, last batch {}, {} workers, storage {}, prefetch {}, {} I/O "
        "threads of depth {}, on_error {}, max_errors {}",
        options.batch_size, options.rank, options.world_size,
        options.last_batch == LastBatch::keep   ? "kept"
        : options.last_batch == LastBatch::drop ? "dropped"
                                                : "padded",
        options.num_workers, storage::name(options.storage), options.prefetch_factor, options.io_threads,
        options.io_depth, name(options.on_error), options.max_errors));
    ++number_;
    if (kind_ == LifeKind::held) held_data_ = data_.open_held();
    const dataset::DatasetPtr data = held_data_ ? held_data_ : data_.open(options.storage);
    may_hold_batches_ = below(3) != 0;
    if (!may_hold_batches_) options.memory_limit = least_limit(data, options);
    loader_ = std::make_unique<Loader>(data, options);
    model_.emplace(options, size_, straight_);
    options_ = options;
    if (!states_.empty() && below(2) == 0) load_state();
  }

  // The least that is not refused, to a MiB.
  std::uint64_t least_limit(const dataset::DatasetPtr& data, LoaderOptions options) {
    std::uint64_t refused = 0, works = options.memory_limit >> 20;
    while (works - refused > 1) {
      options.memory_limit = (refused + works) / 2 << 20;
      const std::string error = error_of([&] { Loader(data, options); });
      check(error.empty() || error.find("memory_limit") != std::string::npos, "another error: " + error);
      (error.empty() ? works : refused) = (refused + works) / 2;
    }
    journal_.note(fmt::format("with memory_limit {} MiB", works));
    return works << 20;
  }

  void act() {
    if (!loader_) return make_loader();
    // Without workers, next() itself reads the stand-in of a bad sample, and waits for it.
    const bool may_hold =
        kind_ == LifeKind::held && (options_.num_workers > 0 || options_.on_error != OnError::replace);
    if (may_hold && below(5) == 0) return reads_are_held_ ? let_reads() : hold_reads();
    const std::uint32_t draw = below(100);
    if (draw < 45) return take("next");
    if (draw < 52) return take_all();
    if (draw < 60) return drop_held(1 + below(3));
    if (draw < 75) return start_epoch();
    if (draw < 80) return states_.push_back(loader_->state());
    if (draw < 86) return load_state();
    if (draw < 90) return set_num_workers();
    if (draw < 94) return check_figures();
    if (draw < 95) return watched();
    if (draw < 96) return close_meanwhile();
    if (draw < 98) return close();
    drop_loader();
  }

  // Sometimes the caller gives up as soon as it is asked; always where it would wait for ever.
  Interrupted draw_patience(std::string& step) {
    if (!reads_are_held_ && below(6) != 0) return {};
    step += ", giving up";
    return [] { return true; };
  }

  // No read ends for a few steps, and batches that are not ready yet do not come.
  void hold_reads() {
    journal_.note("hold the reads");
    held_data_->reads.hold();
    reads_are_held_ = true;
  }
  void let_reads() {
    if (!std::exchange(reads_are_held_, false)) return;
    journal_.note("let the reads go");
    held_data_->reads.let();
  }

  // The message of the error that a call ended with; empty: none.
  template <typename Call>
  static std::string error_of(Call&& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }

  void take(std::string step) {
    const Interrupted patience = draw_patience(step);
    journal_.note(step);
    BatchPtr batch;
    const std::string error = error_of([&] { batch = loader_->next(patience); });
    if (patience && error == "interrupted") return;
    compare(batch, error);
  }

  void compare(const BatchPtr& batch, const std::string& error) {
    const Outcome wanted = model_->next();
    check(error.empty() == wanted.error.empty() && error.starts_with(wanted.error),
          fmt::format("the error: `{}`, and not `{}` as the model says", error, wanted.error));
    if (!error.empty()) return;
    check_equal(batch != nullptr, wanted.batch.has_value(), "whether there is a batch");
    if (!batch) return;
    check_equal(batch->epoch(), wanted.epoch, "the batch's epoch");
    check_equal(batch->step(), wanted.step, "the batch's step");
    Taken got = copy_out(*batch);
    check_equal(words(got.ids), words(wanted.batch->ids), "the ids");
    check_equal(words(got.indices), words(wanted.batch->indices), "the indices");
    check_equal(words({got.valid.begin(), got.valid.end()}),
                words({wanted.batch->valid.begin(), wanted.batch->valid.end()}), "which rows are valid");
    check_equal(words(got.lengths), words(wanted.batch->lengths), "the lengths");
    check(got == *wanted.batch, "labels or bytes differ from those of the straight run");
    if (may_hold_batches_ && held_.size() < kMostHeld && below(3) == 0)
      held_.push_back({batch, std::move(got), number_});
  }

  void take_all() {
    let_reads();
    while (!model_->is_at_end() && !model_->has_failed()) take("next, to the end of the epoch");
  }

  // A batch that is held stays as it was handed out, also when its loader is gone.
  void drop_held(std::size_t most) {
    for (; most > 0 && !held_.empty(); --most) {
      const std::size_t at = below(static_cast<std::uint32_t>(held_.size()));
      journal_.note(fmt::format("drop a batch of loader {}", held_[at].loader));
      check(copy_out(*held_[at].batch) == held_[at].copy, "a batch that was held has changed");
      if (below(2) == 0) {
        std::thread([batch = std::move(held_[at].batch)]() mutable { batch.reset(); }).join();
      }
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  void start_epoch() {
    const std::uint64_t epoch = below(3) == 0 ? below(4) : model_->epoch() + 1;
    const std::uint64_t position = below(4) == 0 ? below(static_cast<std::uint32_t>(size_) + 2) : 0;
    std::string step = fmt::format("start epoch {} at {}", epoch, position);
    const Interrupted patience = draw_patience(step);
    journal_.note(step);
    go_to(epoch, position, patience, error_of([&] { loader_->start_epoch(epoch, position, patience); }));
  }

  void load_state() {
    if (states_.empty()) return;
    State state = states_[below(static_cast<std::uint32_t>(states_.size()))];
    std::string step = fmt::format("load the state of epoch {} at {}", state.epoch, state.position);
    const std::uint32_t draw = below(12);
    if (draw == 0) ++state.seed, step += ", with another seed";
    if (draw == 1) ++state.size, step += ", of a larger data set";
    const Interrupted patience = draw_patience(step);
    journal_.note(step);
    const std::string error = error_of([&] { loader_->load_state(state, patience); });
    if (draw <= 1) return check(error.starts_with("the saved state"), "a wrong state is taken: " + error);
    go_to(state.epoch, state.position, patience, error);
  }

  void go_to(std::uint64_t epoch, std::uint64_t position, const Interrupted& patience, const std::string& error) {
    if (position > size_) return check(error.starts_with("cannot start at position"), "no refusal: " + error);
    if (patience && error == "interrupted") return model_->read_again();
    check_equal(error, std::string(), "the error");
    model_->start_epoch(epoch, position);
  }

  void set_num_workers() {
    const int workers = static_cast<int>(below(4));
    journal_.note(fmt::format("set {} workers", workers));
    const std::string error = error_of([&] { loader_->set_num_workers(workers); });
    check_equal(error.empty(), workers > 0 && options_.num_workers > 0, "whether the number of workers changes");
  }

  void check_place() {
    check_equal(loader_->epoch(), model_->epoch(), "the epoch");
    check_equal(loader_->steps(), model_->steps(), "the steps");
    const State state = loader_->state();
    check_equal(state.epoch, model_->state().first, "the state's epoch");
    check_equal(state.position, model_->state().second, "the state's position");
  }

  void check_figures() {
    journal_.note("look at the figures");
    const Stats stats = loader_->stats();
    check_equal(stats.batches, model_->batches(), "stats.batches");
    check_equal(stats.samples, model_->samples(), "stats.samples");
    check_equal<std::uint64_t>(stats.errors, model_->errors().size(), "stats.errors");
    const auto held = std::count_if(held_.begin(), held_.end(), [&](const Held& one) {
      return one.loader == number_ && one.batch->slab_bytes() > 0;
    });
    check_equal<std::uint64_t>(stats.slabs_held, static_cast<std::uint64_t>(held), "stats.slabs_held");
    check(stats.memory_peak <= options_.memory_limit, "the loader holds more than memory_limit");
    const std::vector<SampleError> errors = loader_->errors();
    check_equal(errors.size(), model_->errors().size(), "the number of errors");
    for (std::size_t i = 0; i < errors.size(); ++i) {
      const SampleError &got = errors[i], &wanted = model_->errors()[i];
      check_equal(got.message().in_python(), wanted.message().in_python(), "an error");
      check_equal(got.action, wanted.action, "what was done about it");
      check_equal(got.epoch, wanted.epoch, "its epoch");
      check_equal(got.position, wanted.position, "its position");
      check_equal(got.id, wanted.id, "its id");
    }
  }

  // What other threads may ask while batches are taken.
  void watched() {
    let_reads();
    journal_.note("next, ten times, while another thread looks on");
    std::atomic<bool> over{false};
    std::thread observer([&] {
      for (int workers = 1; !over; workers = workers % 3 + 1) {
        static_cast<void>(loader_->stats());
        static_cast<void>(loader_->errors());
        static_cast<void>(loader_->notes());
        if (options_.num_workers > 0) loader_->set_num_workers(workers);
        std::this_thread::yield();
      }
    });
    struct Join {
      std::thread& thread;
      std::atomic<bool>& flag;
      ~Join() {
        flag = true;
        thread.join();
      }
    } join{observer, over};
    for (int i = 0; i < 10; ++i) take("next");
  }

  void close_meanwhile() {
    let_reads();
    journal_.note("next, until another thread has closed the loader");
    std::thread closer([&] { loader_->close(); });
    std::string error;
    while (error.empty()) {
      BatchPtr batch;
      error = error_of([&] { batch = loader_->next(); });
      if (error.find("closed") != std::string::npos) break;
      if (model_->is_at_end()) {
        check(batch == nullptr && error.empty(), "no end of the epoch");
        error = error_of([&] { loader_->start_epoch(0); });
        if (error.empty()) model_->start_epoch(0, 0);
        continue;
      }
      compare(batch, error);
    }
    closer.join();
    if (error.find("closed") == std::string::npos) error = error_of([&] { loader_->next(); });
    check(error.find("closed") != std::string::npos, "use after close: " + error);
    loader_.reset();
  }

  void close() {
    std::string step = "close";
    const Interrupted patience = draw_patience(step);
    journal_.note(step);
    const std::string error = error_of([&] { loader_->close(patience); });
    if (!patience || error != "interrupted") check_equal(error, std::string(), "the error");
    let_reads();
    loader_->close();
    check_equal(error_of([&] { loader_->next(); }), std::string("the loader is closed"), "next() after close");
    check_equal(error_of([&] { loader_->start_epoch(0); }), std::string("the loader is closed"), "and start_epoch()");
    check_figures();
    check_place();
    loader_.reset();
  }

  void drop_loader() {
    let_reads();
    journal_.note("drop the loader");
    loader_.reset();
  }

  Journal& journal_;
  Random random_;
  LifeKind kind_;
  std::uint64_t size_;
  std::set<std::uint64_t> bad_;
  bool equal_lengths_;
  std::string sound_text_;
  LifeData data_;
  LoaderOptions what_, options_;
  StraightRun straight_;
  std::unique_ptr<Loader> loader_;
  std::optional<LoaderModel> model_;
  std::uint64_t number_ = 0;
  std::shared_ptr<HeldData> held_data_;  // of the loader, where the kind is held
  bool reads_are_held_ = false;
  bool may_hold_batches_ = false;  // there is memory for them
  std::vector<State> states_;
  std::vector<Held> held_;
};

TEST(LoaderLife, AtRandomIsWhatTheModelSays) {
  const bool is_long = setting("STOKER_LIFE_LONG", 0) != 0;
  const auto clock = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  const std::uint64_t first = setting("STOKER_LIFE_SEED", is_long ? clock / 1000 : 1);
  const std::chrono::seconds length(setting("STOKER_LIFE_SECONDS", is_long ? 1800 : 6));
  const auto end = std::chrono::steady_clock::now() + length;
  std::printf("STOKER_LIFE_SEED=%llu\n", static_cast<unsigned long long>(first));
  std::fflush(stdout);
  std::uint64_t seed = first, steps = 0;
  for (; std::chrono::steady_clock::now() < end; ++seed) {
    Journal journal(seed);
    try {
      Life(seed, journal).run();
    } catch (const std::exception& error) {
      FAIL() << error.what() << "\n" << journal.text();
    }
    steps += journal.steps();
  }
  std::printf("%llu lives, %llu steps\n", static_cast<unsigned long long>(seed - first),
              static_cast<unsigned long long>(steps));
}

}  // namespace
}  // namespace stoker::loader
