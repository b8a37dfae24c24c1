//! The reference broker.
#![allow(dead_code)]
mod message;
mod outbuf;
mod retained;
mod routes;
mod topic;
mod tree;
