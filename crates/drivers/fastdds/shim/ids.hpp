// Participant ids. Left alone, the library counts them up for as long as the process lives and
// never uses one again: the ports that follow from them (DDSI-RTPS 9.6.1: base + gain * domain +
// 2 * id) would soon be those that nobody looks at in discovery, then those of other domains, and
// past 65535 the library ends the process. An id given to it must be unique in the process, in
// whatever domain. So that an id that is used again does not look like its last user, each
// participant gets a GUID prefix of its own (the library would make it from the id).
#pragma once

#include <fastdds/rtps/common/GuidPrefix_t.hpp>
#include <fastdds/rtps/common/VendorId_t.hpp>

#include <arpa/inet.h>
#include <cstdint>
#include <mutex>
#include <set>
#include <sys/socket.h>
#include <unistd.h>

namespace pubgauge {

class Ids {
    std::mutex mutex_;
    std::set<int32_t> taken_;
    uint32_t made_ = 0;

    // Whether nobody on this host has the port at the address.
    static bool free_port(uint32_t host, uint32_t port) {
        if (port > 65535) return false;
        const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0) return true; // The library will say what is wrong.
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(uint16_t(port));
        address.sin_addr.s_addr = htonl(host);
        const bool bound = bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0;
        close(fd);
        return bound;
    }

public:
    static Ids &instance() {
        static Ids ids;
        return ids;
    }

    // The lowest id whose ports are free, below `limit`; -1 if there is none.
    int32_t take(uint32_t domain, uint32_t limit, uint32_t host) {
        std::lock_guard<std::mutex> guard(mutex_);
        for (int32_t id = 0; id < int32_t(limit); id++) {
            const uint32_t base = 7400 + 250 * domain + 2 * uint32_t(id);
            if (taken_.count(id) == 0 && free_port(host, base + 10) &&
                free_port(host, base + 11)) {
                taken_.insert(id);
                return id;
            }
        }
        return -1;
    }

    void give_back(int32_t id) {
        std::lock_guard<std::mutex> guard(mutex_);
        taken_.erase(id);
    }

    // Vendor, host, process, and a number of its own (DDSI-RTPS 9.3.1.5), laid out as the library
    // lays it out: it tells by these bytes who is on the same host and in the same process.
    eprosima::fastrtps::rtps::GuidPrefix_t prefix(uint32_t address) {
        std::lock_guard<std::mutex> guard(mutex_);
        eprosima::fastrtps::rtps::GuidPrefix_t prefix;
        // On a network hosts may have one id, as containers of one image do.
        const bool alone = address == INADDR_LOOPBACK;
        const uint32_t host = alone ? uint32_t(gethostid()) : address & 0xffff;
        const uint32_t process = uint32_t(getpid());
        const uint32_t number = ++made_;
        prefix.value[0] = eprosima::fastrtps::rtps::c_VendorId_eProsima[0];
        prefix.value[1] = eprosima::fastrtps::rtps::c_VendorId_eProsima[1];
        prefix.value[2] = uint8_t(host);
        prefix.value[3] = uint8_t(host >> 8);
        for (int i = 0; i < 4; i++) {
            prefix.value[4 + i] = uint8_t(process >> (8 * i));
            prefix.value[8 + i] = uint8_t(number >> (8 * i));
        }
        return prefix;
    }
};

} // namespace pubgauge
