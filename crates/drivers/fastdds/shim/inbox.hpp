// Samples that the library's receive thread has taken for a reader, until the fleet's thread hands
// them on. The two meet here, in a lock held for a copy of a few bytes, instead of at the reader's
// own, which the library holds while it deserializes: a receive thread that waits there lets the
// socket's buffer overflow, and each datagram lost delays all after it until it is sent again.
#pragma once

#include "shim.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

namespace pubgauge {

class Inbox {
    struct Entry {
        size_t offset;
        size_t len;
        int64_t source_ns;
    };
    // Buffers are used again: nothing is allocated once they have grown.
    struct Batch {
        std::vector<uint8_t> bytes;
        std::vector<Entry> entries;
    };

    std::mutex mutex_;
    Batch filling_; // guarded by `mutex_`
    // Of the fleet's thread alone.
    Batch draining_;
    size_t next_ = 0;

public:
    // Samples that may wait here; what comes after stays in the reader's history.
    static constexpr size_t ROOM = 1024;

    size_t room() {
        std::lock_guard<std::mutex> guard(mutex_);
        return ROOM - std::min(ROOM, filling_.entries.size());
    }

    void put(const uint8_t *data, size_t len, int64_t source_ns) {
        std::lock_guard<std::mutex> guard(mutex_);
        filling_.entries.push_back({filling_.bytes.size(), len, source_ns});
        filling_.bytes.insert(filling_.bytes.end(), data, data + len);
    }

    bool empty() {
        if (next_ < draining_.entries.size()) return false;
        std::lock_guard<std::mutex> guard(mutex_);
        return filling_.entries.empty();
    }

    // The oldest, up to `max`; they stay valid until the next call.
    int get(pgf_sample *out, int max) {
        if (next_ == draining_.entries.size()) {
            draining_.entries.clear();
            draining_.bytes.clear();
            next_ = 0;
            std::lock_guard<std::mutex> guard(mutex_);
            std::swap(filling_, draining_);
        }
        int count = 0;
        for (; count < max && next_ < draining_.entries.size(); count++, next_++) {
            const Entry &e = draining_.entries[next_];
            out[count] = {draining_.bytes.data() + e.offset, e.len, e.source_ns};
        }
        return count;
    }
};

} // namespace pubgauge
