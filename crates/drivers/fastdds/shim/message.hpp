// The one data type: module pubgauge { @final struct Message { @key unsigned long device;
// sequence<octet> payload; }; }; in plain CDR, little-endian (XCDR version 1).
#pragma once

#include <fastdds/dds/topic/TopicDataType.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace pubgauge {

// Encapsulation header, device, length of the sequence.
constexpr uint32_t HEAD = 12;

// What a writer is given: two parts, so that nobody joins them before serialize() does.
struct Outgoing {
    uint32_t device = 0;
    const uint8_t *head = nullptr;
    uint32_t head_len = 0;
    const uint8_t *body = nullptr;
    uint32_t body_len = 0;
};

// What a reader fills; the buffer is used again.
struct Incoming {
    uint32_t device = 0;
    uint8_t *data = nullptr;
    uint32_t len = 0;
    uint32_t room = 0;

    Incoming() = default;
    Incoming(const Incoming &) = delete;
    Incoming &operator=(const Incoming &) = delete;
    ~Incoming() { std::free(data); }

    bool set(const uint8_t *bytes, uint32_t count) {
        if (count > room) {
            auto *more = static_cast<uint8_t *>(std::realloc(data, count));
            if (more == nullptr) return false;
            data = more;
            room = count;
        }
        if (count > 0) std::memcpy(data, bytes, count);
        len = count;
        return true;
    }
};

// serialize() gets Outgoing, deserialize() Incoming; getKey() begins with `device` in both.
class MessageType : public eprosima::fastdds::dds::TopicDataType {
    using Payload = eprosima::fastrtps::rtps::SerializedPayload_t;
    bool bounded_;

public:
    // `initial` bytes are reserved for each sample; more is allocated when a sample needs it. With
    // data sharing the size is fixed, and no sample may be longer.
    MessageType(uint32_t initial, bool bounded) : bounded_(bounded) {
        setName("pubgauge::Message");
        m_typeSize = initial + HEAD;
        m_isGetKeyDefined = !bounded;
        auto_fill_type_object(false);
        auto_fill_type_information(false);
    }

    bool is_bounded() const override { return bounded_; }

    bool serialize(void *data, Payload *p) override {
        const auto &m = *static_cast<Outgoing *>(data);
        const uint32_t len = m.head_len + m.body_len;
        if (uint64_t(len) + HEAD > p->max_size) return false;
        p->encapsulation = CDR_LE;
        const uint8_t encapsulation[4] = {0, 1, 0, 0};
        std::memcpy(p->data, encapsulation, 4);
        put_le(p->data + 4, m.device);
        put_le(p->data + 8, len);
        std::memcpy(p->data + HEAD, m.head, m.head_len);
        if (m.body_len > 0) std::memcpy(p->data + HEAD + m.head_len, m.body, m.body_len);
        p->length = len + HEAD;
        return true;
    }

    // What comes from the network may say anything: nothing is read beyond what came.
    bool deserialize(Payload *p, void *data) override {
        auto &m = *static_cast<Incoming *>(data);
        m.len = 0;
        if (p->length < HEAD || p->data[0] != 0 || p->data[1] > 1) return false;
        const bool little = p->data[1] == 1;
        m.device = get(p->data + 4, little);
        const uint32_t len = get(p->data + 8, little);
        if (len > p->length - HEAD) return false;
        return m.set(p->data + HEAD, len);
    }

    std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
        return [data] {
            const auto &m = *static_cast<Outgoing *>(data);
            return m.head_len + m.body_len + HEAD;
        };
    }

    void *createData() override { return new Incoming; }
    void deleteData(void *data) override { delete static_cast<Incoming *>(data); }

    // A key of up to 16 bytes is its own hash: big-endian CDR, the rest zero (DDSI-RTPS 9.6.3.8).
    bool getKey(void *data, eprosima::fastrtps::rtps::InstanceHandle_t *handle, bool) override {
        if (!m_isGetKeyDefined) return false;
        uint32_t device;
        std::memcpy(&device, data, 4);
        for (int i = 0; i < 16; i++) handle->value[i] = 0;
        for (int i = 0; i < 4; i++) handle->value[i] = uint8_t(device >> (24 - 8 * i));
        return true;
    }

private:
    static void put_le(uint8_t *to, uint32_t v) {
        for (int i = 0; i < 4; i++) to[i] = uint8_t(v >> (8 * i));
    }
    static uint32_t get(const uint8_t *from, bool little) {
        uint32_t v = 0;
        for (int i = 0; i < 4; i++) v |= uint32_t(from[i]) << (little ? 8 * i : 24 - 8 * i);
        return v;
    }
};

} // namespace pubgauge
