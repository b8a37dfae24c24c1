//! Hosts that are looked up for each connection: on threads beside the loop, because a name server may take seconds.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use pubgauge_driver::{Attempt, ClientId, DriverError};

use crate::endpoint::Endpoint;
use crate::waker::Waker;

/// The most look-ups of a fleet at once.
const THREADS: usize = 8;

/// Finds the addresses of an endpoint's host.
pub type LookUp = Arc<dyn Fn(&Endpoint) -> Result<Vec<SocketAddr>, DriverError> + Send + Sync>;

/// A connection that waits for the addresses of its host.
struct Question {
    id: ClientId,
    epoch: u32,
    endpoint: Arc<Endpoint>,
}

/// The addresses for a connection.
pub(crate) struct Answer {
    pub id: ClientId,
    /// The number of the client's connection.
    pub epoch: u32,
    /// The addresses of its host in the order of the name service, or why there are none.
    pub addresses: Result<Vec<SocketAddr>, DriverError>,
}

/// The threads that look hosts up. They end when this is dropped, each after its look-up.
pub(crate) struct Lookups {
    /// The endpoints of the fleet.
    endpoints: Vec<Arc<Endpoint>>,
    questions: Sender<Question>,
    answers: Receiver<Answer>,
}

impl Lookups {
    /// Begins the threads, which `waker` tells the loop of their answers with.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn begin(
        endpoints: &[Endpoint],
        look_up: &LookUp,
        waker: &Waker,
    ) -> Result<Lookups, DriverError> {
        let (questions, asked) = channel::<Question>();
        let (answer, answers) = channel();
        let asked = Arc::new(Mutex::new(asked));
        for _ in 0..THREADS {
            let (asked, answer) = (asked.clone(), answer.clone());
            let (look_up, waker) = (look_up.clone(), waker.clone());
            let serve = move || {
                loop {
                    let next = asked.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(Question {
                        id,
                        epoch,
                        endpoint,
                    }) = next
                    else {
                        return;
                    };
                    let addresses = look_up(&endpoint);
                    let found = Answer {
                        id,
                        epoch,
                        addresses,
                    };
                    if answer.send(found).is_err() {
                        return;
                    }
                    waker.wake();
                }
            };
            let thread = thread::Builder::new().name("name-lookup".to_owned());
            thread.spawn(serve).map_err(|error| {
                DriverError::of_io("cannot start a thread", Attempt::Start, &error)
            })?;
        }
        Ok(Lookups {
            endpoints: endpoints.iter().cloned().map(Arc::new).collect(),
            questions,
            answers,
        })
    }

    /// Asks for the addresses of the fleet's endpoint of that number, for a client's connection of number `epoch`.
    pub fn ask(&self, id: ClientId, epoch: u32, place: usize) {
        let endpoint = self.endpoints[place].clone();
        // The threads end after this.
        let _ = self.questions.send(Question {
            id,
            epoch,
            endpoint,
        });
    }

    /// An answer that came since.
    pub fn take_answer(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }
}
