// A transport around Fast DDS's own that counts what crosses the system interface, and notices
// arrivals: Debian's library is built without the statistics module, and DDS has no event for
// "the writer's history has room again".
#pragma once

#include <fastdds/rtps/common/Locator.h>
#include <fastdds/rtps/transport/ChainingTransport.h>
#include <fastdds/rtps/transport/ChainingTransportDescriptor.h>
#include <fastdds/rtps/transport/TransportReceiverInterface.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>

#include <atomic>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <mutex>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace pubgauge {

namespace rtps = eprosima::fastdds::rtps;
namespace wire = eprosima::fastrtps::rtps;

// What a participant's threads and the fleet's thread share.
struct Shared {
    std::atomic<uint64_t> sent_bytes{0}, received_bytes{0}, sent{0}, received{0};
    // Datagrams that the library is done with.
    std::atomic<uint64_t> handled{0};

    // What the fleet's thread sleeps on, a futex: 0 awake, 1 asleep, 2 asleep and interested in
    // every arrival.
    std::atomic<uint32_t> sleeping{0};
    static_assert(sizeof(std::atomic<uint32_t>) == 4 && std::atomic<uint32_t>::is_always_lock_free);
    std::mutex mutex;
    std::vector<uint32_t> ready; // guarded by `mutex`
    std::atomic<uint32_t> ready_count{0};

    void wake() {
        if (sleeping.load(std::memory_order_seq_cst) != 0 &&
            sleeping.exchange(0, std::memory_order_seq_cst) != 0) {
            syscall(SYS_futex, &sleeping, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
        }
    }

    // Until woken, or for so long, or until a signal. Returns at once if somebody has woken since
    // `how` was stored in `sleeping`.
    void sleep(uint32_t how, int64_t ns) {
        const timespec time{time_t(ns / 1000000000), long(ns % 1000000000)};
        syscall(SYS_futex, &sleeping, FUTEX_WAIT_PRIVATE, how, &time, nullptr, 0);
    }

    void data(uint32_t reader) {
        {
            std::lock_guard<std::mutex> guard(mutex);
            ready.push_back(reader);
            ready_count.fetch_add(1, std::memory_order_seq_cst);
        }
        wake();
    }

    void arrival() {
        handled.fetch_add(1, std::memory_order_seq_cst);
        if (sleeping.load(std::memory_order_seq_cst) == 2) wake();
    }
};

// Passes on to another iterator and counts the addresses of a kind on the way: one address, one
// datagram. (The library shows every transport the addresses of all.)
class CountedLocators : public rtps::LocatorsIterator {
    rtps::LocatorsIterator &inner_;
    int32_t kind_;

public:
    uint64_t count = 0;

    CountedLocators(rtps::LocatorsIterator &inner, int32_t kind) : inner_(inner), kind_(kind) {}
    rtps::LocatorsIterator &operator++() override {
        count += (*inner_).kind == kind_;
        ++inner_;
        return *this;
    }
    bool operator==(const rtps::LocatorsIterator &other) const override { return inner_ == other; }
    bool operator!=(const rtps::LocatorsIterator &other) const override { return inner_ != other; }
    const rtps::Locator &operator*() const override { return *inner_; }
};

struct CountingDescriptor : rtps::ChainingTransportDescriptor {
    std::shared_ptr<Shared> shared;
    // Whether it is a network: what goes through shared memory is noticed, not counted.
    bool wire;

    CountingDescriptor(std::shared_ptr<rtps::TransportDescriptorInterface> low,
                       std::shared_ptr<Shared> s, bool w)
        : ChainingTransportDescriptor(low), shared(std::move(s)), wire(w) {}
    rtps::TransportInterface *create_transport() const override;
};

class CountingTransport : public rtps::ChainingTransport {
    CountingDescriptor descriptor_;

public:
    explicit CountingTransport(const CountingDescriptor &d) : ChainingTransport(d), descriptor_(d) {}

    rtps::TransportDescriptorInterface *get_configuration() override { return &descriptor_; }

    bool send(wire::SenderResource *low, const wire::octet *buffer, uint32_t size,
              wire::LocatorsIterator *begin, wire::LocatorsIterator *end,
              const std::chrono::steady_clock::time_point &timeout) override;

    void receive(rtps::TransportReceiverInterface *next, const wire::octet *buffer, uint32_t size,
                 const wire::Locator_t &local, const wire::Locator_t &remote) override {
        Shared &s = *descriptor_.shared;
        if (descriptor_.wire) {
            s.received_bytes.fetch_add(size, std::memory_order_relaxed);
            s.received.fetch_add(1, std::memory_order_relaxed);
        }
        next->OnDataReceived(buffer, size, local, remote);
        s.arrival();
    }
};

// The library uses shared memory only where it finds a descriptor of exactly this kind.
struct NoticedMemoryDescriptor : rtps::SharedMemTransportDescriptor {
    std::shared_ptr<Shared> shared;

    explicit NoticedMemoryDescriptor(std::shared_ptr<Shared> s) : shared(std::move(s)) {}
    rtps::TransportInterface *create_transport() const override;
};

} // namespace pubgauge
