//! Compiles the bench's yardstick, a plain C program, against the bundled libzmq; only where the
//! feature `bench-c` asks for it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "bench-c")]
    {
        println!("cargo:rerun-if-changed=benches/plain.c");
        let include = std::env::var_os("DEP_ZMQ_INCLUDE")
            .expect("zmq-sys tells where it has put zmq.h (cargo:include)");
        cc::Build::new()
            .file("benches/plain.c")
            .include(include)
            .opt_level(2)
            .compile("plain");
    }
}
