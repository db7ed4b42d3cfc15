// A policy by hand, from C++:
// c++ -std=c++17 by_hand.cc $(pkg-config --cflags --libs allocrig) && ./a.out growth
#include <allocrig.h>

#include <cinttypes>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

namespace
{

struct close_library {
    void operator()(ar_library *library) const
    {
        ar_library_close(library);
    }
};

struct close_session {
    void operator()(ar_session *session) const
    {
        ar_session_close(session);
    }
};

void check(ar_status status, const ar_error &error)
{
    if (status != AR_OK)
        throw std::runtime_error(error.text);
}

} // namespace

int main(int argc, char **argv)
try {
    ar_error error = {};
    ar_library *library = nullptr;
    check(ar_library_open(&library, &error), error);
    std::unique_ptr<ar_library, close_library> library_owner(library);
    ar_session *session = nullptr;
    check(ar_session_open(library, argc > 1 ? argv[1] : "growth", "sim:capacity=1GiB", 1, &session,
                          &error),
          error);
    std::unique_ptr<ar_session, close_session> session_owner(session);
    std::vector<ar_policy_block> blocks(8);
    for (std::uint64_t i = 0; i < blocks.size(); i++) {
        ar_policy_request request = {};
        request.bytes = (i + 1) * AR_MIB;
        check(ar_session_alloc(session, &request, &blocks[i], &error), error);
    }
    struct ar_policy_stats stats;
    ar_session_stats(session, &stats);
    std::printf("live %" PRIu64 " reserved %" PRIu64 "\n", stats.totals.live_bytes,
                stats.totals.reserved_bytes);
    for (const ar_policy_block &block : blocks)
        check(ar_session_free(session, &block, 0, &error), error);
    return 0;
} catch (const std::exception &problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
}
