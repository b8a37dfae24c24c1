//! The reference broker: MQTT 3.1.1 and 5 in memory, to compare measurements
//! with, **not for production**.
//!
//! It is small, does what the two standards ask for, and costs so little that
//! its figures show the most that MQTT on this machine can do. pubgauge runs it
//! where no broker is installed, and drivers are tested with it. It keeps
//! nothing on disk, has no TLS, one user list and no access rules.
//!
//! [`run`] listens and serves until a flag is set; [`serve`] does so on a
//! socket that already listens. Nothing is printed. Run it as a process of its
//! own, so that its CPU time can be measured.
//!
//! # What it does
//! Both versions on one port, QoS 0 to 2 with downgrade to the subscription's,
//! retained messages, wildcards, shared subscriptions (also for 3.1.1 clients, as
//! mosquitto), clean and durable sessions with expiry, wills with delay, message
//! expiry, keep-alive, take-over of a client identifier, receive maximum and
//! maximum packet size both ways, topic aliases from clients, subscription
//! identifiers, no local, retain as published, retain handling, every property
//! that is to be passed on, and mosquitto's `$SYS` topics for version, clients,
//! messages and bytes. Not: topic aliases to clients, enhanced authentication,
//! server redirection.
//!
//! A client with several matching subscriptions gets one copy of a message, at
//! the highest of their QoS, with all their identifiers (MQTT 5 section 3.3.4).
//! A message of a shared subscription stays with the member it was sent to.
//!
//! # How it is fast
//! One thread, one event loop on epoll. Everything is read into one buffer and
//! decoded there. Messages at QoS 0 that follow each other to the same topic
//! are copied to each subscriber's buffer as they came, all at once, and each
//! subscriber's buffer is written once a turn. Who subscribes to a topic is
//! remembered until a subscription changes. None of that allocates, locks or
//! calls the system for a single message. These leave this path and are handled
//! one message at a time, still without allocation: properties, other topics in
//! between, QoS 1 and 2 to clean sessions, shared subscriptions, the other
//! version. What a durable session may have to send again is kept, at one
//! allocation a message.
//!
//! # When a subscriber does not keep up
//! Nothing is dropped, except as below. A connected subscriber for which more
//! than [`Options::max_backlog_bytes`] wait stops the publishers that feed it:
//! their connections are not read until half of that is gone, so a flat-out
//! publisher feels TCP's back-pressure. Other traffic goes on. Meanwhile their
//! keep-alive is suspended and their pings wait.
//!
//! Publishers that would wait for each other in a circle (the simplest: a
//! client that floods itself) are let through when waiting could not end: at
//! once if what is missing are acknowledgements that would not be read, after
//! half a second if nobody reads. They may then go to four times the limit;
//! only beyond are messages dropped, and counted in
//! [`Counters::publish_dropped`]. So are messages beyond the limits of a
//! durable session whose client is not connected, and of the retained store.
//!
//! # What it withstands
//! Anything that is not MQTT ends the connection it came from, under MQTT 5
//! with the reason. Memory is bounded for each connection, session and topic by
//! [`Options`]. Without a free file descriptor, the connecting client is
//! disconnected, accepting pauses for 100 ms, and
//! [`Counters::accept_out_of_files`] counts it.

mod broker;
mod conn;
mod connect;
mod cost;
mod deliver;
mod encode;
mod message;
mod options;
mod outbuf;
mod publish;
mod retained;
mod routes;
mod server;
mod session;
mod subscribe;
mod sys;
mod table;
mod timers;
mod topic;
mod tree;
mod window;

pub use options::{BrokerError, Counters, Credential, Options};
pub use server::{run, serve};
