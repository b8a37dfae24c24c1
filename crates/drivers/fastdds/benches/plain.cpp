// The yardstick of fastdds_vs_plain.rs: the plainest C++ program on the same library with the same
// QoS, after the library's own examples. Its publisher writes and lets the library wait; its
// subscriber takes sample by sample in the listener. `keyed` gives the driver's data type; without
// it the type is an octet sequence alone. With `fill` and `check` the messages have content, which
// the subscriber looks at on a thread of its own, woken by the library's WaitSet: what a program does
// whose other work may not wait for the library's threads.
//
// The writer's durability is the library's own, transient local, as in a program that says nothing
// of it: in release 2.9.1 a volatile writer's write() was seen to fail long before the time it may wait.
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::Duration_t;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::SerializedPayload_t;

namespace {

struct Message {
    uint32_t device = 7;
    std::vector<uint8_t> payload;
};

struct PlainType : TopicDataType {
    uint32_t head;
    PlainType(uint32_t size, bool keyed) : head(keyed ? 12 : 8) {
        setName(keyed ? "pubgauge::Message" : "plain::Octets");
        m_typeSize = size + head;
        m_isGetKeyDefined = keyed;
    }
    bool serialize(void *data, SerializedPayload_t *p) override {
        auto &m = *static_cast<Message *>(data);
        const uint32_t n = uint32_t(m.payload.size());
        const uint8_t encapsulation[4] = {0, 1, 0, 0};
        p->encapsulation = CDR_LE;
        std::memcpy(p->data, encapsulation, 4);
        if (head == 12) std::memcpy(p->data + 4, &m.device, 4);
        std::memcpy(p->data + head - 4, &n, 4);
        std::memcpy(p->data + head, m.payload.data(), n);
        p->length = n + head;
        return true;
    }
    bool deserialize(SerializedPayload_t *p, void *data) override {
        auto &m = *static_cast<Message *>(data);
        uint32_t n;
        if (p->length < head) return false;
        if (head == 12) std::memcpy(&m.device, p->data + 4, 4);
        std::memcpy(&n, p->data + head - 4, 4);
        if (n > p->length - head) return false;
        m.payload.assign(p->data + head, p->data + head + n);
        return true;
    }
    std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
        return [this, data] { return uint32_t(static_cast<Message *>(data)->payload.size()) + head; };
    }
    void *createData() override { return new Message; }
    void deleteData(void *data) override { delete static_cast<Message *>(data); }
    bool getKey(void *data, InstanceHandle_t *handle, bool) override {
        if (!m_isGetKeyDefined) return false;
        const uint32_t device = static_cast<Message *>(data)->device;
        for (int i = 0; i < 16; i++) handle->value[i] = i < 4 ? uint8_t(device >> (24 - 8 * i)) : 0;
        return true;
    }
};

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Taker : DataReaderListener {
    std::atomic<long> count{0};
    double first = 0, last = 0;
    Message message;
    void on_data_available(DataReader *reader) override {
        SampleInfo info;
        while (reader->take_next_sample(&message, &info) == ReturnCode_t::RETCODE_OK) {
            if (!info.valid_data) continue;
            last = now();
            if (count++ == 0) first = last;
        }
    }
};

DomainParticipant *participant(uint32_t domain, bool tuned) {
    DomainParticipantQos q;
    auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    if (tuned) udp->receiveBufferSize = udp->sendBufferSize = 4 << 20;
    udp->interfaceWhiteList.push_back("127.0.0.1");
    q.transport().use_builtin_transports = false;
    q.transport().user_transports.push_back(udp);
    eprosima::fastrtps::rtps::Locator_t here;
    eprosima::fastrtps::rtps::IPLocator::setIPv4(here, "127.0.0.1");
    q.wire_protocol().builtin.metatrafficUnicastLocatorList.push_back(here);
    q.wire_protocol().builtin.initialPeersList.push_back(here);
    q.wire_protocol().default_unicast_locator_list.push_back(here);
    return DomainParticipantFactory::get_instance()->create_participant(domain, q);
}

Topic *topic(DomainParticipant *p, int size, bool keyed) {
    TypeSupport type(new PlainType(uint32_t(size), keyed));
    type.register_type(p);
    return p->create_topic("pubgauge", type.get_type_name(), TOPIC_QOS_DEFAULT);
}

void end(DomainParticipant *p) {
    p->delete_contained_entities();
    DomainParticipantFactory::get_instance()->delete_participant(p);
}

} // namespace

extern "C" int plain_publish(long count, int size, uint32_t domain, int tuned, int keyed, void (*go)(),
                             void (*fill)(void *, char *, long), void *user) {
    auto *p = participant(domain, tuned);
    auto *t = topic(p, size, keyed);
    DataWriterQos q;
    q.reliability().kind = RELIABLE_RELIABILITY_QOS;
    q.reliability().max_blocking_time = Duration_t(5, 0);
    q.history().kind = KEEP_ALL_HISTORY_QOS;
    q.resource_limits().max_instances = 1;
    q.resource_limits().max_samples = q.resource_limits().max_samples_per_instance = 400;
    q.data_sharing().off();
    q.endpoint().history_memory_policy =
        eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
    if (tuned) {
        q.reliable_writer_qos().times.heartbeatPeriod = Duration_t(0, 1000000);
        q.reliable_writer_qos().times.nackResponseDelay = Duration_t(0, 0);
    }
    PublisherQos publisher;
    publisher.partition().push_back("bench/0");
    auto *w = p->create_publisher(publisher)->create_datawriter(t, q);
    PublicationMatchedStatus matched;
    for (int i = 0; i < 1000; i++) {
        w->get_publication_matched_status(matched);
        if (matched.current_count > 0) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    Message m;
    m.payload.assign(size_t(size), 7);
    go();
    for (long i = 0; i < count; i++) {
        if (fill) fill(user, reinterpret_cast<char *>(m.payload.data()), i);
        if (!w->write(&m)) return 1;
    }
    w->wait_for_acknowledgments(Duration_t(20, 0));
    end(p);
    return 0;
}

extern "C" double plain_subscribe(long count, int size, uint32_t domain, int tuned, int keyed,
                                  void (*ready)(), void (*check)(void *, const char *, size_t, long),
                                  void *user) {
    auto *p = participant(domain, tuned);
    auto *t = topic(p, size, keyed);
    DataReaderQos q;
    q.reliability().kind = RELIABLE_RELIABILITY_QOS;
    q.history().kind = KEEP_ALL_HISTORY_QOS;
    q.resource_limits().max_instances = 0;
    q.resource_limits().max_samples = 0;
    q.resource_limits().max_samples_per_instance = tuned ? 1000 : 400;
    q.data_sharing().off();
    q.endpoint().history_memory_policy =
        eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
    if (tuned) q.reliable_reader_qos().times.heartbeatResponseDelay = Duration_t(0, 0);
    Taker taker;
    SubscriberQos subscriber;
    subscriber.partition().push_back("bench/0");
    auto *s = p->create_subscriber(subscriber);
    auto *reader = check ? s->create_datareader(t, q) : s->create_datareader(t, q, &taker);
    ready();
    const double start = now();
    if (check) {
        auto &condition = reader->get_statuscondition();
        condition.set_enabled_statuses(StatusMask::data_available());
        WaitSet set;
        set.attach_condition(condition);
        ConditionSeq active;
        while (taker.count < count && now() - start < 120) {
            if (set.wait(active, Duration_t(1, 0)) != ReturnCode_t::RETCODE_OK) continue;
            SampleInfo info;
            while (reader->take_next_sample(&taker.message, &info) == ReturnCode_t::RETCODE_OK) {
                if (!info.valid_data) continue;
                taker.last = now();
                if (taker.count == 0) taker.first = taker.last;
                const auto &payload = taker.message.payload;
                check(user, reinterpret_cast<const char *>(payload.data()), payload.size(), taker.count++);
            }
        }
    }
    while (taker.count < count && now() - start < 120)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const double seconds = taker.count == count ? taker.last - taker.first : -1;
    // Lets the last acknowledgement leave.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    end(p);
    return seconds;
}
