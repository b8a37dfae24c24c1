#include "counting.hpp"

#include <fastdds/rtps/network/SenderResource.h>

namespace pubgauge {

rtps::TransportInterface *CountingDescriptor::create_transport() const {
    return new CountingTransport(*this);
}

rtps::TransportInterface *NoticedMemoryDescriptor::create_transport() const {
    auto low = std::make_shared<rtps::SharedMemTransportDescriptor>(*this);
    return new CountingTransport(CountingDescriptor(low, shared, false));
}

bool CountingTransport::send(wire::SenderResource *low, const wire::octet *buffer, uint32_t size,
                             wire::LocatorsIterator *begin, wire::LocatorsIterator *end,
                             const std::chrono::steady_clock::time_point &timeout) {
    if (!descriptor_.wire) return low->send(buffer, size, begin, end, timeout);
    CountedLocators counted(*begin, transport_kind_);
    const bool sent = low->send(buffer, size, &counted, end, timeout);
    Shared &s = *descriptor_.shared;
    s.sent_bytes.fetch_add(counted.count * size, std::memory_order_relaxed);
    s.sent.fetch_add(counted.count, std::memory_order_relaxed);
    return sent;
}

} // namespace pubgauge
