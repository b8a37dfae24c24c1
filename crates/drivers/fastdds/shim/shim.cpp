// Participants, writers and readers behind a C face. Fast DDS throws nothing by itself; what its
// allocations may throw ends at the catch blocks of the functions that create something.
#include "shim.h"

#include "counting.hpp"
#include "ids.hpp"
#include "message.hpp"

#include <fastdds/dds/core/LoanableSequence.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/log/Log.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/publisher/qos/DataWriterQos.hpp>
#include <fastdds/dds/publisher/qos/PublisherQos.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/subscriber/qos/DataReaderQos.hpp>
#include <fastdds/dds/subscriber/qos/SubscriberQos.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/flowcontrol/FlowControllerDescriptor.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/attributes/LibrarySettingsAttributes.h>
#include <fastrtps/utils/IPLocator.h>
#include <fastrtps/xmlparser/XMLProfileManager.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::Duration_t;
using eprosima::fastrtps::rtps::IPLocator;
using eprosima::fastrtps::rtps::Locator_t;
using pubgauge::Incoming;
using pubgauge::Outgoing;
using pubgauge::Shared;

namespace {

constexpr int GROUP = 64;
const char *const FLOW = "pubgauge";
const char *const TOPIC = "pubgauge";
// Administratively scoped (RFC 2365), like the default of DDSI-RTPS (9.6.1.4.1).
const char *const MULTICAST = "239.255.0.1";
// Bytes reserved for a sample before it is known how long it is; longer ones grow once.
constexpr uint32_t INITIAL = 1024;

FASTDDS_SEQUENCE(IncomingSeq, Incoming);

Duration_t duration(int64_t ns) {
    return Duration_t(int32_t(ns / 1000000000), uint32_t(ns % 1000000000));
}

// Keeps the library's last error for whoever wonders why something was refused. A library does not
// write to its program's standard output.
class LastError : public LogConsumer {
    static std::mutex mutex_;
    static std::string words_;

public:
    void Consume(const Log::Entry &entry) override {
        std::lock_guard<std::mutex> guard(mutex_);
        words_ = entry.message;
    }
    static std::string take() {
        Log::Flush();
        std::lock_guard<std::mutex> guard(mutex_);
        return std::exchange(words_, std::string());
    }
};
std::mutex LastError::mutex_;
std::string LastError::words_;

// Says in `error` why there is nothing to return.
std::nullptr_t say(char *error, size_t len, const std::string &what) {
    const std::string why = LastError::take();
    if (len > 0) {
        std::snprintf(error, len, "%s%s%s", what.c_str(), why.empty() ? "" : ": ", why.c_str());
    }
    return nullptr;
}

} // namespace

struct pgf_participant {
    pgf_config config;
    std::shared_ptr<Shared> shared;
    int32_t id = -1;
    DomainParticipant *entity = nullptr;
    Topic *topic = nullptr;
    // Where samples are taken to; one thread takes.
    IncomingSeq samples{GROUP};
    SampleInfoSeq infos{GROUP};
};

struct pgf_writer {
    pgf_participant *p;
    Publisher *publisher;
    DataWriter *entity;
    Outgoing message;
};

struct pgf_reader : DataReaderListener {
    pgf_participant *p = nullptr;
    Subscriber *subscriber = nullptr;
    DataReader *entity = nullptr;
    uint32_t number = 0;
    // Stands in the list of readers with data; only the first sample after a take costs a lock.
    std::atomic<bool> listed{false};

    void on_data_available(DataReader *) override {
        if (!listed.load(std::memory_order_acquire) &&
            !listed.exchange(true, std::memory_order_acq_rel)) {
            p->shared->data(number);
        }
    }
};

namespace {

void destroy(pgf_participant *p) {
    if (p->entity != nullptr) {
        p->entity->delete_contained_entities();
        DomainParticipantFactory::get_instance()->delete_participant(p->entity);
    }
    if (p->id >= 0) pubgauge::Ids::instance().give_back(p->id);
    delete p;
}

void transport(DomainParticipantQos &q, const pgf_config &c, const std::shared_ptr<Shared> &shared) {
    q.transport().use_builtin_transports = false;
    const bool shared_memory = c.transport == 1;
    if (shared_memory) {
        auto d = std::make_shared<pubgauge::NoticedMemoryDescriptor>(shared);
        if (c.send_buffer_bytes >= 0) d->segment_size(uint32_t(c.send_buffer_bytes));
        if (c.max_message_bytes >= 0) d->max_message_size(uint32_t(c.max_message_bytes));
        q.transport().user_transports.push_back(d);
    }
    // Discovery goes over UDP in any case.
    auto d = std::make_shared<pubgauge::rtps::UDPv4TransportDescriptor>();
    if (!shared_memory) {
        if (c.send_buffer_bytes >= 0) d->sendBufferSize = uint32_t(c.send_buffer_bytes);
        if (c.receive_buffer_bytes >= 0) d->receiveBufferSize = uint32_t(c.receive_buffer_bytes);
        if (c.max_message_bytes >= 0) d->maxMessageSize = uint32_t(c.max_message_bytes);
        if (c.multicast_hops >= 0) d->TTL = uint8_t(c.multicast_hops);
    }
    const auto octet = [](uint32_t address, int n) { return (unsigned char)(address >> (24 - 8 * n)); };
    const auto locator = [&](uint32_t address) {
        Locator_t at;
        IPLocator::setIPv4(at, octet(address, 0), octet(address, 1), octet(address, 2), octet(address, 3));
        return at;
    };
    const Locator_t here = locator(c.own_host);
    d->interfaceWhiteList.push_back(IPLocator::toIPv4string(here));
    d->maxInitialPeersRange = c.peers;
    q.transport().user_transports.push_back(
        std::make_shared<pubgauge::CountingDescriptor>(d, shared, true));

    // By unicast to the first participants of the domain on each host: the interface need not have
    // multicast.
    q.wire_protocol().builtin.metatrafficUnicastLocatorList.push_back(here);
    for (uint32_t n = 0; n < c.hosts; n++) {
        q.wire_protocol().builtin.initialPeersList.push_back(locator(c.host[n]));
    }
    // With shared memory the library lists both ways by itself, and writers take the faster one.
    if (!shared_memory) q.wire_protocol().default_unicast_locator_list.push_back(here);
}

DomainParticipantQos participant_qos(const pgf_config &c, const std::shared_ptr<Shared> &shared) {
    DomainParticipantQos q;
    q.name("pubgauge");
    transport(q, c, shared);
    if (c.flow_scheduler >= 0) {
        auto flow = std::make_shared<pubgauge::rtps::FlowControllerDescriptor>();
        flow->name = FLOW;
        flow->scheduler = pubgauge::rtps::FlowControllerSchedulerPolicy(c.flow_scheduler);
        flow->max_bytes_per_period = int32_t(c.flow_bytes_per_period);
        flow->period_ms = c.flow_period_ms;
        q.flow_controllers().push_back(flow);
    }
    return q;
}

// What writers and readers have in common.
template <typename Qos>
Qos common_qos(const pgf_config &c, bool transient_local, int32_t depth) {
    Qos q;
    q.reliability().kind = c.reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
    q.durability().kind =
        transient_local ? TRANSIENT_LOCAL_DURABILITY_QOS : VOLATILE_DURABILITY_QOS;
    q.history().kind = depth > 0 ? KEEP_LAST_HISTORY_QOS : KEEP_ALL_HISTORY_QOS;
    if (depth > 0) q.history().depth = depth;
    if (c.lifespan_ns >= 0) q.lifespan().duration = duration(c.lifespan_ns);
    if (c.data_sharing) {
        q.data_sharing().on("");
        q.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_MEMORY_MODE;
    } else {
        q.data_sharing().off();
        q.endpoint().history_memory_policy =
            eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
    }
    return q;
}

DataWriterQos writer_qos(const pgf_config &c, int32_t priority) {
    auto q = common_qos<DataWriterQos>(c, c.writer_transient_local, c.writer_depth);
    q.reliability().max_blocking_time = Duration_t(0, 0);
    auto &limits = q.resource_limits();
    limits.max_instances = 1;
    limits.max_samples = limits.max_samples_per_instance = c.writer_samples;
    limits.allocated_samples = std::min(limits.allocated_samples, c.writer_samples);
    q.publish_mode().kind = c.asynchronous ? ASYNCHRONOUS_PUBLISH_MODE : SYNCHRONOUS_PUBLISH_MODE;
    if (c.flow_scheduler >= 0) q.publish_mode().flow_controller_name = FLOW;
    if (priority != 127) {
        q.properties().properties().emplace_back("fastdds.sfc.priority",
                                                 std::to_string(priority));
    }
    auto &reliable = q.reliable_writer_qos();
    if (c.heartbeat_ns >= 0) reliable.times.heartbeatPeriod = duration(c.heartbeat_ns);
    if (c.nack_response_ns >= 0) reliable.times.nackResponseDelay = duration(c.nack_response_ns);
    reliable.disable_heartbeat_piggyback = !c.piggyback;
    return q;
}

DataReaderQos reader_qos(const pgf_config &c) {
    auto q = common_qos<DataReaderQos>(c, c.reader_transient_local, c.reader_depth);
    auto &limits = q.resource_limits();
    // One instance per writer, and any number of those; the library then insists on no limit
    // over all of them.
    limits.max_instances = 0;
    limits.max_samples = 0;
    limits.max_samples_per_instance = c.reader_samples;
    if (c.heartbeat_response_ns >= 0) {
        q.reliable_reader_qos().times.heartbeatResponseDelay = duration(c.heartbeat_response_ns);
    }
    q.reader_resource_limits().max_samples_per_read = GROUP;
    if (c.multicast) {
        Locator_t group;
        IPLocator::setIPv4(group, MULTICAST);
        group.port = 7400 + 250 * c.domain + 1; // DDSI-RTPS 9.6.1.1: user multicast, PB + DG + d2.
        q.endpoint().multicast_locator_list.push_back(group);
    }
    return q;
}

} // namespace

extern "C" {

pgf_participant *pgf_open(const pgf_config *config, char *error, size_t error_len, int *no_ports) {
    *no_ports = 0;
    try {
        static std::once_flag once;
        std::call_once(once, [] {
            Log::SetVerbosity(Log::Kind::Error);
            Log::ClearConsumers();
            Log::RegisterConsumer(std::unique_ptr<LogConsumer>(new LastError));
        });
        // Otherwise fleets of one process would call each other's readers directly, and a trial
        // would measure a function call.
        eprosima::fastrtps::LibrarySettingsAttributes library;
        library.intraprocess_delivery = config->intraprocess
                                            ? eprosima::fastrtps::INTRAPROCESS_FULL
                                            : eprosima::fastrtps::INTRAPROCESS_OFF;
        eprosima::fastrtps::xmlparser::XMLProfileManager::library_settings(library);

        std::unique_ptr<pgf_participant, void (*)(pgf_participant *)> p(new pgf_participant, destroy);
        p->config = *config;
        p->shared = std::make_shared<Shared>();
        p->id = pubgauge::Ids::instance().take(config->domain, config->peers, config->own_host);
        if (p->id < 0) {
            *no_ports = 1;
            return say(error, error_len, "all participant ids that discovery looks at are taken");
        }
        auto qos = participant_qos(*config, p->shared);
        qos.wire_protocol().participant_id = p->id;
        qos.wire_protocol().prefix = pubgauge::Ids::instance().prefix(config->own_host);
        auto *factory = DomainParticipantFactory::get_instance();
        p->entity = factory->create_participant(config->domain, qos);
        if (p->entity == nullptr)
            return say(error, error_len, "Fast DDS could not create a participant");
        const bool bounded = config->data_sharing != 0;
        const uint32_t initial = bounded ? config->max_payload : std::min(config->max_payload, INITIAL);
        TypeSupport type(new pubgauge::MessageType(initial, bounded));
        if (type.register_type(p->entity) == ReturnCode_t::RETCODE_OK) {
            p->topic = p->entity->create_topic(TOPIC, type.get_type_name(), TOPIC_QOS_DEFAULT);
        }
        if (p->topic == nullptr) return say(error, error_len, "Fast DDS could not create the topic");
        return p.release();
    } catch (const std::exception &e) {
        return say(error, error_len, e.what());
    }
}

void pgf_close(pgf_participant *p) { destroy(p); }

void pgf_traffic_read(const pgf_participant *p, pgf_traffic *out) {
    const Shared &s = *p->shared;
    out->sent_bytes = s.sent_bytes.load(std::memory_order_relaxed);
    out->received_bytes = s.received_bytes.load(std::memory_order_relaxed);
    out->sent_datagrams = s.sent.load(std::memory_order_relaxed);
    out->received_datagrams = s.received.load(std::memory_order_relaxed);
}

void pgf_sleep(pgf_participant *p, int64_t arrivals, int64_t ns) {
    Shared &s = *p->shared;
    const uint32_t how = arrivals >= 0 ? 2 : 1;
    s.sleeping.store(how, std::memory_order_seq_cst);
    // Whoever comes after the store wakes; whoever came before is seen here.
    if (s.ready_count.load(std::memory_order_seq_cst) == 0 &&
        (arrivals < 0 || s.handled.load(std::memory_order_seq_cst) <= uint64_t(arrivals))) {
        s.sleep(how, ns);
    }
    s.sleeping.store(0, std::memory_order_seq_cst);
}

int64_t pgf_arrivals(const pgf_participant *p) {
    return int64_t(p->shared->handled.load(std::memory_order_acquire));
}

size_t pgf_ready(pgf_participant *p, uint32_t *out, size_t len) {
    Shared &s = *p->shared;
    if (s.ready_count.load(std::memory_order_acquire) == 0) return 0;
    std::lock_guard<std::mutex> guard(s.mutex);
    const size_t count = std::min(len, s.ready.size());
    std::copy(s.ready.begin(), s.ready.begin() + long(count), out);
    s.ready.erase(s.ready.begin(), s.ready.begin() + long(count));
    s.ready_count.fetch_sub(uint32_t(count), std::memory_order_seq_cst);
    return count;
}

pgf_writer *pgf_writer_create(pgf_participant *p, const char *partition, uint32_t device,
                              int32_t priority, char *error, size_t error_len) {
    try {
        PublisherQos qos;
        qos.partition().push_back(partition);
        Publisher *publisher = p->entity->create_publisher(qos);
        if (publisher == nullptr)
            return say(error, error_len, "Fast DDS could not create a publisher");
        DataWriter *entity = publisher->create_datawriter(p->topic, writer_qos(p->config, priority));
        if (entity == nullptr) {
            p->entity->delete_publisher(publisher);
            return say(error, error_len, "Fast DDS refused the data writer's QoS");
        }
        auto *w = new pgf_writer{p, publisher, entity, {}};
        w->message.device = device;
        return w;
    } catch (const std::exception &e) {
        return say(error, error_len, e.what());
    }
}

int pgf_write(pgf_writer *w, const uint8_t *head, size_t head_len, const uint8_t *body,
              size_t body_len) {
    w->message.head = head;
    w->message.head_len = uint32_t(head_len);
    w->message.body = body;
    w->message.body_len = uint32_t(body_len);
    const ReturnCode_t code = w->entity->write(&w->message, HANDLE_NIL);
    if (code == ReturnCode_t::RETCODE_OK) return 0;
    return code == ReturnCode_t::RETCODE_TIMEOUT || code == ReturnCode_t::RETCODE_OUT_OF_RESOURCES ? 1
                                                                                                   : 2;
}

int pgf_writer_settled(pgf_writer *w) {
    return w->entity->wait_for_acknowledgments(Duration_t(0, 0)) == ReturnCode_t::RETCODE_OK;
}

void pgf_writer_delete(pgf_writer *w, int64_t wait_ns) {
    if (wait_ns > 0) w->entity->wait_for_acknowledgments(duration(wait_ns));
    w->publisher->delete_datawriter(w->entity);
    w->p->entity->delete_publisher(w->publisher);
    delete w;
}

pgf_reader *pgf_reader_create(pgf_participant *p, uint32_t number, const char *const *partitions,
                              size_t count, char *error, size_t error_len) {
    try {
        SubscriberQos qos;
        for (size_t i = 0; i < count; i++) qos.partition().push_back(partitions[i]);
        auto r = std::make_unique<pgf_reader>();
        r->p = p;
        r->number = number;
        r->subscriber = p->entity->create_subscriber(qos);
        if (r->subscriber == nullptr)
            return say(error, error_len, "Fast DDS could not create a subscriber");
        r->entity = r->subscriber->create_datareader(p->topic, reader_qos(p->config), r.get(),
                                                     StatusMask::data_available());
        if (r->entity == nullptr) {
            p->entity->delete_subscriber(r->subscriber);
            return say(error, error_len, "Fast DDS refused the data reader's QoS");
        }
        return r.release();
    } catch (const std::exception &e) {
        return say(error, error_len, e.what());
    }
}

int pgf_reader_partitions(pgf_reader *r, const char *const *partitions, size_t count) {
    SubscriberQos qos = r->subscriber->get_qos();
    qos.partition().clear();
    for (size_t i = 0; i < count; i++) qos.partition().push_back(partitions[i]);
    return r->subscriber->set_qos(qos) == ReturnCode_t::RETCODE_OK ? 0 : 1;
}

int pgf_take(pgf_reader *r, pgf_sample *out, int max, int *more) {
    *more = 0;
    // Before the look, so that what comes during it is announced again.
    r->listed.store(false, std::memory_order_seq_cst);
    auto &samples = r->p->samples;
    auto &infos = r->p->infos;
    samples.length(0);
    infos.length(0);
    const ReturnCode_t code = r->entity->take(samples, infos, max);
    if (code == ReturnCode_t::RETCODE_NO_DATA) return 0;
    if (code != ReturnCode_t::RETCODE_OK) return -1;
    const int count = infos.length();
    *more = count == max;
    int filled = 0;
    for (int i = 0; i < count; i++) {
        if (!infos[i].valid_data) continue;
        const Incoming &sample = samples[i];
        out[filled++] = {sample.data, sample.len, infos[i].source_timestamp.to_ns()};
    }
    return filled;
}

void pgf_reader_delete(pgf_reader *r) {
    r->entity->set_listener(nullptr);
    r->subscriber->delete_datareader(r->entity);
    r->p->entity->delete_subscriber(r->subscriber);
    delete r;
}

} // extern "C"
