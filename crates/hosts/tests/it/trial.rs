//! A trial whose workers have joined: what they send and receive through a broker is counted as in one
//! process.

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pubgauge_driver::{Clock, Driver, DriverError, Target};
use pubgauge_driver_mqtt::MqttDriver;
use pubgauge_engine::assignment::{Brief, Workers};
use pubgauge_engine::conductor::{Nobody, Outcome, TrialSpec, run};
use pubgauge_engine::link::stream::{link, serve};
use pubgauge_engine::link::{Link, Order, Outbox, Place, Secrets};
use pubgauge_hosts::{Address, Dial, Identity, Joined, Listener, Machine, Options, Rank, join};
use pubgauge_workload::{Arrivals, SECOND, Until, Workload};

const PATIENCE: Duration = Duration::from_secs(60);

/// Workers that have joined, each for one worker of the trial.
struct Hosts(Mutex<Vec<Joined>>);

impl Place for Hosts {
    fn start(
        &self,
        order: Order,
        secrets: Secrets,
        outbox: Outbox,
    ) -> Result<Box<dyn Link>, DriverError> {
        let joined = self
            .0
            .lock()
            .unwrap()
            .pop()
            .expect("as many as the trial has workers");
        let peer = Arc::new(joined.connection);
        link(joined.reader, joined.writer, order, secrets, outbox, peer)
    }

    fn lead(&self) -> u64 {
        100_000_000
    }
}

#[test]
fn workers_that_joined_run_a_trial() {
    let stop = Arc::new(AtomicBool::new(false));
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let broker = socket.local_addr().unwrap();
    let stopped = Arc::clone(&stop);
    let serving = std::thread::spawn(move || {
        pubgauge_broker::serve(socket, pubgauge_broker::Options::default(), &stopped)
    });
    let mut workload = Workload::fan(3, 2, Arrivals::Periodic { per_s: 300.0 });
    workload.phases.warm_up = Until::Time(SECOND / 4);
    workload.phases.measure = Until::Time(SECOND);

    let identity = Identity::generate().unwrap();
    let credentials = identity.credentials(3).unwrap();
    let listener = Listener::start(&identity, &credentials, Options::default()).unwrap();
    let address = listener.address();
    let workers: Vec<_> = (0..3)
        .map(|rank| {
            let dial = Dial {
                conductor: Address {
                    host: address.ip().to_string(),
                    port: address.port(),
                },
                credentials: credentials.for_rank(rank).unwrap(),
                rank: Rank {
                    rank,
                    size: Some(3),
                },
                machine: Machine::here(),
                patience: PATIENCE,
            };
            std::thread::spawn(move || {
                let member = join(&dial).unwrap();
                let driver =
                    |name: &str| (name == "mqtt").then(|| Arc::new(MqttDriver) as Arc<dyn Driver>);
                let (reader, writer) = (member.reader, member.writer);
                serve(reader, writer, driver, |_| Ok(()), Clock::Monotonic, None).unwrap();
            })
        })
        .collect();
    let joined = listener.all(PATIENCE).unwrap();

    let target = Target {
        endpoints: vec![format!("mqtt://{broker}")],
        ..Target::default()
    };
    let brief = Brief::new(workload).unwrap();
    let here = TrialSpec::local(
        brief,
        Arc::new(MqttDriver),
        vec![target],
        Clock::Monotonic,
        |_| Ok(()),
    );
    let spec = TrialSpec {
        workers: Workers {
            publishers: 1,
            subscribers: 2,
            ..Workers::default()
        },
        place: Arc::new(Hosts(Mutex::new(joined))),
        ..here
    };
    let record = run(&spec, &mut Nobody, &AtomicBool::new(false));
    assert_eq!(record.outcome, Outcome::Completed);
    let sum = record.sum();
    // 300 messages in the second, of which each goes to two.
    assert!(sum.published.abs_diff(300) <= 3, "{}", sum.published);
    assert_eq!((sum.unique, sum.lost()), (2 * sum.published, 0));
    for worker in workers {
        worker.join().unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    serving.join().unwrap().unwrap();
}
